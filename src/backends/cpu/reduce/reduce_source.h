// Reductions of values that are computed when they are needed, not read from an array.
#pragma once

#include "catena/array/array.h"
#include "catena/kernels/reduce.h"

namespace catena::host {

// Computes elements of an input in C order. Several threads call it at a time.
class ReduceSource {
 public:
  virtual ~ReduceSource() = default;
  // Elements [first, first + n) in order, in reduce_loop_dtype of the call.
  virtual void read(int64_t first, char* buffer, int64_t n) = 0;
  int64_t item = 0;  // bytes of an element; set by reduce_computed
};

// The dtype that the loops of a reduction read.
Dtype reduce_loop_dtype(ReduceOp op, Dtype output);
// Like reduce, over an input of `shape` (not empty) that `source` computes. call.input is not used.
void reduce_computed(const ReduceCall& call, const Shape& shape, ReduceSource& source);

}  // namespace catena::host
