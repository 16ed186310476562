// Copies, fills and joins of arrays.
#pragma once

#include <vector>

#include "catena/core/scalar.h"
#include "catena/kernels/slot.h"

namespace catena {

class Array;

// Copies with cast: same shape, same device, any layouts, not overlapping (or identical).
struct CopyCall {
  const Array& source;
  const Array& destination;
};

// Contiguous or strided fill; not empty.
struct FillCall {
  const Array& destination;
  const Scalar& value;
};

// destination[i] = start + i * step, contiguous 1-d; integers in int64, floats in double.
struct ArangeCall {
  const Array& destination;
  const Scalar& start;
  const Scalar& step;
};

// Inputs one after the other along `axis` into a contiguous output of the same dtype.
struct ConcatenateCall {
  const std::vector<Array>& inputs;
  int axis;
  const Array& output;
};

namespace kernels {

// The slots of the calls above.
extern Slot<CopyCall> copy;
extern Slot<FillCall> fill;
extern Slot<ArangeCall> arange;
extern Slot<ConcatenateCall> concatenate;

}  // namespace kernels

}  // namespace catena
