// Operations that combine the values of ranks.
#pragma once

#include "catena/core/error.h"
#include "catena/status/call_signature.h"  // Reduction

namespace catena::comm {

// A reduction, and for the weighted sum the factor of this rank's values.
//
// Mean and weighted sum need a floating dtype. On bool sum and max are `or`, product and min are
// `and`. 16-bit floats accumulate in float32 and are rounded once (not with nccl, which may round
// at every hop). Integers wrap.
struct Reduce {
  Reduction kind = Reduction::kSum;
  double weight = 1;

  Reduce() = default;
  Reduce(Reduction reduction) : kind(reduction) {
    CATENA_CHECK(ValueError, reduction != Reduction::kWeighted,
                 "Reduce: a weighted sum needs this rank's weight, use comm::weighted(number)");
  }

 private:
  friend Reduce weighted(double weight);
};

// sum over ranks of weight_r * x_r; a rank without work joins with weight 0. With weights that add
// up to one this is an exact average over uneven shards.
inline Reduce weighted(double weight) {
  Reduce result;
  result.kind = Reduction::kWeighted;
  result.weight = weight;
  return result;
}

}  // namespace catena::comm
