// The known schedules, and what they and schedules of users are made with: lists of computations
// become schedules by with_messages() and with_updates().
//
//   const Schedule schedule = with_updates(one_forward_one_backward(ranks, micro_batches));
//
// All take any number of ranks and of micro-batches of at least 1, fewer micro-batches than ranks
// and numbers that do not divide included; ValueError for others. They have messages and no
// updates.
#pragma once

#include <vector>

#include "catena/parallel/pipeline/costs.h"
#include "catena/parallel/pipeline/schedule.h"

namespace catena::parallel::pipeline {

// Stages on ranks. One stage a rank: 0 1 2 3. Several, round and round: 0 1 2 3 0 1 2 3. There and
// back, two a rank: 0 1 2 3 3 2 1 0.
std::vector<int> stages_in_order(int ranks);
std::vector<int> stages_in_rounds(int ranks, int stages_per_rank);
std::vector<int> stages_in_v(int ranks);

// With sends and receives between its computations; those that it has are placed anew. A message
// goes after what it sends and before what waits for it, at places that one order of time makes, so
// that ranks never wait for each other in a circle. Several timelines and places are tried, and
// those taken for which simulate() says the shortest step with these costs. If several are as
// short, the first counts: computations of unit costs, messages as late as their receivers allow.
// Of one_forward_one_backward's lists it makes exact 1F1B, with the exchange with a neighbour in
// one group. ValueError if computations are not as check() asks, or ranks would wait for each other
// with any messages.
Schedule with_messages(Schedule schedule, const Costs& costs = {});

// With the kReduce of each stage behind its last gradients and the messages that follow these,
// unless `reduce` is false, and the kUpdate of all stages at the end of each rank's list, in the
// order of their last gradients: no computation waits for a reduction. ValueError if it has such
// actions already, or lacks gradients.
Schedule with_updates(Schedule schedule, bool reduce = true);

// All forwards, then all backwards (Huang et al. 2019, GPipe). Bubble (p - 1) / (m + p - 1) for p
// ranks and m micro-batches, all of which are in flight.
Schedule gpipe(int ranks, int micro_batches);

// 1F1B (Narayanan et al. 2019, PipeDream; without its stale weights): the bubble of GPipe, with
// min(p - rank, m) micro-batches in flight. Each rank begins with `ahead` forwards more than the
// next one; 2 hides transfers, for almost twice the micro-batches in flight, if the messages are
// placed for their times by with_messages().
Schedule one_forward_one_backward(int ranks, int micro_batches, int ahead = 1);

// Interleaved 1F1B (Narayanan et al. 2021): stage s is on rank s % ranks, and the bubble is
// 1 / stages_per_rank of 1F1B's, for as many times its messages and more micro-batches in flight.
// Micro-batches go through a rank's stages in groups of `group`, 0: of `ranks`; the last group may
// have fewer. In groups of `ranks` a micro-batch comes from the last rank back to the first just as
// this is through with the group, so that the message's time is lost. Groups of g micro-batches
// leave it the time of g - ranks forwards, and hide the messages between neighbours as well, for
// (stages_per_rank - 1) * (g - ranks) more (of the smaller) activations on each rank: twice `ranks`
// is a good choice where a message takes two fifths of a forward or more. ValueError for groups of
// fewer than `ranks`.
Schedule interleaved(int ranks, int stages_per_rank, int micro_batches, int group = 0);

// ZB-H1 (Qi et al. 2023, Zero Bubble Pipeline Parallelism): backwards in two halves, of which those
// of weights fill the bubble. A third of 1F1B's bubble where all three take the same time, and on
// no rank more than the min(p, m) micro-batches that 1F1B has on its first.
Schedule zero_bubble(int ranks, int micro_batches);

// ZB-V (Qi et al. 2024, Pipeline Parallelism with Controllable Memory): two stages a rank, there
// and back. No rank waits from its first action to its last where forwards and both halves take the
// same time and m >= 2 p, with 2 p of the (half as large) activations of a stage on each.
Schedule zb_v(int ranks, int micro_batches);

// Limits, and what is the shortest.
struct ZeroBubbleOptions {
  std::vector<double> limits;  // of each rank; none: twice what 1F1B's first rank holds
  int steps = 4;
};

// A schedule with backwards in two halves for costs as measured: in the order of time, each rank
// takes gradients of inputs first, then forwards (of its last stage first), then gradients of
// weights. A forward begins only if the rank then holds at most `limits` bytes (of activations and
// for_weights, as simulate() counts them without messages). Several orders of precedence are tried;
// the result is the one for which simulate() says the shortest time over `steps` steps. ValueError
// if no order keeps a rank within its limit.
Schedule zero_bubble(const std::vector<int>& rank_of_stage, int micro_batches, const Costs& costs,
                     const ZeroBubbleOptions& options = {});

}  // namespace catena::parallel::pipeline
