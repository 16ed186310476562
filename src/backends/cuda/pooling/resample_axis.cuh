// Range and weights of the elements of an axis that give one of the other image, on a device.
#pragma once

#include "backends/cuda/pooling/pooling_index.cuh"
#include "backends/cuda/pooling/resample.h"

namespace catena::gpu {

// The elements of the longest range, or a few more.
inline int64_t longest(const AxisRanges& r) {
  const int64_t most = (r.end_shift - r.begin_shift + r.divisor - 1) / r.divisor;
  return most < r.limit ? most : r.limit;
}

// An axis in the type of the indices.
template <class Index>
struct Axis {
  using D = Signed<Index>;
  Quotient<Index> by;
  D limit, scale, begin_shift, end_shift;
  D slope, offset, unit, in;
  bool transposed, weighted;
  AxisWeights weights;
  explicit Axis(const AxisRanges& r)
      : by(r.divisor),
        limit(D(r.limit)),
        scale(D(r.scale)),
        begin_shift(D(r.begin_shift)),
        end_shift(D(r.end_shift)),
        slope(D(r.slope)),
        offset(D(r.offset)),
        unit(D(r.unit)),
        in(D(r.in)),
        transposed(r.transposed),
        weighted(is_weighted(r)),
        weights(r.weights) {}
  __device__ D quotient(D n) const {
    if (n < 0) return 0;
    const D q = D(by.of(Index(n)));
    return q < limit ? q : limit;
  }
  __device__ AxisSpan<D> span(D o) const {
    const D n = o * scale;
    return {quotient(n + begin_shift), quotient(n + end_shift)};
  }
  // Of element i in the sum for element o.
  template <class C>
  __device__ C weight(D o, D i) const {
    if (weights == AxisWeights::kPart)
      return C(1) / C(((i + 1) * slope + unit - 1) / unit - i * slope / unit);
    const D to = transposed ? i : o, from = transposed ? o : i;
    const D place = to * slope + offset, most = (in - 1) * unit;
    const D distance = (place < 0 ? 0 : place < most ? place : most) - from * unit;
    return C(unit - (distance < 0 ? -distance : distance)) / C(unit);
  }
};

}  // namespace catena::gpu
