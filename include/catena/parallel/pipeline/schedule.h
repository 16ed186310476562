// Schedules of pipelines: what each rank does in one training step, as data.
//
// A model is cut into stages, a batch into micro-batches. Stage s feeds stage s + 1. A schedule
// says on which rank each stage lives and gives every rank the list of its actions, which run in
// order. schedules.h makes the known ones, simulate.h says what one costs, pipeline.h runs it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace catena::parallel::pipeline {

// What an action does.
enum class Kind : uint8_t {
  kForward,          // of a micro-batch through a stage
  kBackward,         // gradients of inputs and weights
  kBackwardInputs,   // gradients of inputs: what the stage before waits for
  kBackwardWeights,  // gradients of weights, any time after kBackwardInputs
  kSendOutput,       // of the stage, to the rank of the next one
  kRecvInput,        // of the stage, from the rank of the one before
  kSendGradient,     // of the stage's input, to the rank of the one before
  kRecvGradient,     // of the stage's output, from the rank of the next one
  kReduce,           // gradients of the stage's weights are complete: average them over replicas
  kUpdate            // the stage's weights
};

// One thing that a rank does.
struct Action {
  Kind kind;
  int stage = 0;
  int micro_batch = 0;  // 0 for kReduce and kUpdate
  auto operator<=>(const Action&) const = default;
};

// "F2.5": kind, stage and micro-batch. Kinds are F, B, I, W, > and < (send and receive of outputs),
// } and { (of gradients), R and U. kReduce and kUpdate have no micro-batch: "R2", "U2".
std::string to_string(const Action& action);

// Whether it is a send or a receive; whether it is one of the two sends.
bool is_message(Kind kind);
bool is_send(Kind kind);

// Messages between two ranks arrive in the order of their sending. Sends and receives that follow
// each other in a rank's list are issued together, as one group: none waits for another one of
// them. Stages on one rank hand over to each other without messages.
struct Schedule {
  std::string name;       // for errors and tables: "1f1b"
  int micro_batches = 0;  // into which a batch is divided, numbered from 0
  // The rank that runs each stage; its size is the number of stages. A rank may have several.
  std::vector<int> rank_of_stage;
  // What each rank does, in this order; its size is the number of ranks.
  std::vector<std::vector<Action>> actions;

  // How many there are.
  int ranks() const { return static_cast<int>(actions.size()); }
  int stages() const { return static_cast<int>(rank_of_stage.size()); }
};

// The lists, a line for each rank: "rank 0: F0.0 >0.0 F0.1 ...".
std::string to_string(const Schedule& schedule);

// The stage at the other end of a message. ValueError for other actions.
int peer_stage(const Action& message);

// ValueError with the rank, the position and the reason unless
// - every rank of rank_of_stage exists, and every action is one of its rank's own stages and of an
//   existing micro-batch; a message has another rank at its other end;
// - every stage has one kForward for each micro-batch, and one kBackward or one kBackwardInputs and
//   then one kBackwardWeights; forwards, gradients of inputs and gradients of weights each go in
//   ascending order of micro-batches, so that sums of gradients have one order, whatever the
//   schedule; the first stage's kBackwardInputs may be left out;
// - what an action needs is there: inputs and gradients made or received before, once; everything
//   that another rank needs is sent, once;
// - the messages from one rank to another are received in the order of their sending;
// - every stage ends with at most one kReduce and then at most one kUpdate, after all its
//   gradients;
// - it ends: executed with sends that wait for their receives, group by group, no ranks wait for
//   each other. The error names the ranks of the cycle and what each waits for.
void check(const Schedule& schedule);

}  // namespace catena::parallel::pipeline
