// Reductions over axes, and positions of extrema.
#pragma once

#include <cstdint>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// The reductions that have a kernel. kSumOfSquares serves norms and variances.
enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin, kAll, kAny, kSumOfSquares };

// output = reduce(input) / divisor (+ output when accumulate). `output` has the input's ndim with
// extent 1 at every reduced axis (bit k of `axes`). input->size() may be 0 for kSum, kProd, kAll,
// kAny (the identity is stored). Input values are converted to output->dtype() first (kAll, kAny:
// to bool); 16-bit floats accumulate in float32 or wider, and wider inputs of a 16-bit output are
// not rounded to 16 bits on the way. `divisor` applies to kSum of floats only.
struct ReduceCall {
  ReduceOp op;
  const Array* input;
  const Array* output;
  uint32_t axes;
  double divisor = 1;
  bool accumulate = false;
};

// int64 positions of the first maximum or minimum (NaN first) along one axis of a non-empty array;
// output has extent 1 there.
struct ArgReduceCall {
  bool maximum;
  const Array* input;
  int axis;
  const Array* output;
};

namespace kernels {

// The slots of the calls above.
extern Slot<ReduceCall> reduce;
extern Slot<ArgReduceCall> arg_reduce;

}  // namespace kernels

}  // namespace catena
