// Products of arrays. float32 products are full float32 unless config().matmul_precision says
// otherwise; float16/bfloat16 accumulate in float32; integers and bool are exact.
#pragma once

#include "catena/array/array.h"

namespace catena {

// NumPy's @: matrices, stacks of matrices (broadcast), vectors on either side.
Array matmul(const Array& a, const Array& b, const Out& out = {});
// NumPy's dot: for 2-d arrays matmul; otherwise the last axis of a with the second last of b.
Array dot(const Array& a, const Array& b);
// Flattened inner product, 0-d.
Array vdot(const Array& a, const Array& b);
Array inner(const Array& a, const Array& b);
Array outer(const Array& a, const Array& b);
// Contracts the last `axes` axes of a with the first of b.
Array tensordot(const Array& a, const Array& b, int64_t axes = 2);
Array tensordot(const Array& a, const Array& b, const Axes& axes_a, const Axes& axes_b);
Array trace(const Array& a, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1);

}  // namespace catena
