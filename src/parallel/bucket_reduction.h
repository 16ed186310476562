// One bucket of gradients on its way over the ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "catena/comm/communicator.h"
#include "catena/parallel/gradient_reducer.h"

namespace catena::parallel {

class LossWeight;
class StepAgreement;

// Whether the gradients of the arena are reduced into the part that this rank updates. Those of
// slices stay whole: norms of parts would depend on the number of ranks.
bool is_reduced_in_parts(const optimizers::ParameterArena& arena, const BucketOptions& options);

// What is reduced, and how.
struct BucketReduction {
  Array gradient;   // 1-d, contiguous
  Array own;        // where this rank's part goes; undefined: all ranks get everything, in place
  comm::Reduce op;  // sum, mean or weighted sum
  comm::CallTag tag;
  std::optional<Dtype> travels_as = {};  // BucketOptions::reduce_dtype where it applies
  Array sum = {};                        // to which `own` is added then; undefined: to none
};

// Adds up what the losses of a step divided by, if that is still to be done: on the communicator's
// side stream, or, where a rider takes it, with the first bucket. `owner`: the optimizer's number.
void start_counts(const BatchRanks& ranks, LossWeight& losses, uint16_t owner);

// Starts it on the communicator's side stream; the event completes with it, and is null on the CPU.
// With `agreement` the sums of what the ranks must agree on travel along, with `losses` their
// counts, where these are still to be added up.
Event start_reduction(const BatchRanks& ranks, const BucketReduction& bucket,
                      StepAgreement* agreement, LossWeight* losses);

// The dtype in which gradients of this one are to travel; none where they are reduced as they are.
std::optional<Dtype> travelling_dtype(Dtype gradient, const BucketOptions& options);

// The reduction with the additions in float32, on the current stream: pieces go to the ranks that
// add them, and come back unless these keep them.
void reduce_rounded(Communicator& comm, const BucketReduction& bucket);

}  // namespace catena::parallel
