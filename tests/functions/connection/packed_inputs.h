// Sequences of different lengths in records of functions.
#pragma once

#include "catena/array/creation.h"
#include "catena/functions/connection/packed_sequences.h"
#include "functions/function_record.h"

namespace catena {

// Lengths of n sequences of at most `steps`, in no order.
inline std::vector<int32_t> lengths_for(int64_t steps, int64_t n) {
  std::vector<int32_t> lengths;
  for (int64_t k = 0; k < n; ++k) lengths.push_back(static_cast<int32_t>(1 + (k * 2 + 1) % steps));
  return lengths;
}

// x, (steps, n, ...), with those lengths, beside x.
inline F::PackedSequences packed(const Variable& x) {
  return F::PackedSequences(x, array(lengths_for(x.shape(0), x.shape(1))).to(x.device()));
}

}  // namespace catena
