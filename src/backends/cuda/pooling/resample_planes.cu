// Resampling of images of one element with channels first, whose element is all that each element
// of y sees: the gradient of global average pooling. A plane of y is one value, written in packs.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/pooling/resample.h"
#include "backends/cuda/pooling/resample_sums.cuh"

namespace catena::gpu {
namespace {

constexpr int kPacksAtOnce = 4;  // of a thread

struct PlaneSizes {
  Quotient<uint32_t> planes;
  uint32_t plane, count;  // elements: of a plane, of y
  double divisor;
};

template <class T>
__device__ Compute<T> plane_value(const ResampleArgs& args, const PlaneSizes& s, uint32_t plane) {
  return widen(static_cast<const T*>(args.x)[plane]) / Compute<T>(s.divisor);
}

// The elements of a pack that may lie in several planes, or be the last ones of y.
template <class T, int N>
__device__ void give_mixed_pack(const ResampleArgs& args, const PlaneSizes& s, uint32_t first) {
  uint32_t plane = first;
  uint32_t place = s.planes.split(plane);
  Compute<T> value = plane_value<T>(args, s, plane), values[N] = {};
#pragma unroll
  for (int k = 0; k < N; ++k) {
    values[k] = value;
    if (++place < s.plane || first + k + 1 >= s.count) continue;
    place = 0;
    value = plane_value<T>(args, s, ++plane);
  }
  if (first + N <= s.count) return give_sums<T, N>(args, first, values, Compute<T>(1));
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const Compute<T> one[1] = {values[k]};
    if (first + k < s.count) give_sums<T, 1>(args, first + k, one, Compute<T>(1));
  }
}

template <class T>
__global__ void __launch_bounds__(kPoolingThreads)
    resample_planes_kernel(ResampleArgs args, PlaneSizes s) {
  wait_for_previous_kernel();
  constexpr int N = kPack<T>;
  const uint32_t pack = blockIdx.x * (kPoolingThreads * kPacksAtOnce) + threadIdx.x;
  if (s.plane % N != 0) {
    for (int u = 0; u < kPacksAtOnce; ++u) {
      const uint32_t first = (pack + u * kPoolingThreads) * N;
      if (first < s.count) give_mixed_pack<T, N>(args, s, first);
    }
    return;
  }
  Compute<T> values[kPacksAtOnce] = {};
#pragma unroll
  for (int u = 0; u < kPacksAtOnce; ++u) {
    const uint32_t first = (pack + u * kPoolingThreads) * N;
    if (first < s.count) values[u] = plane_value<T>(args, s, s.planes.of(first));
  }
#pragma unroll
  for (int u = 0; u < kPacksAtOnce; ++u) {
    const uint32_t first = (pack + u * kPoolingThreads) * N;
    Compute<T> of_pack[N];
#pragma unroll
    for (int k = 0; k < N; ++k) of_pack[k] = values[u];
    if (first < s.count) give_sums<T, N>(args, first, of_pack, Compute<T>(1));
  }
}

// Whether each element of the axis is made of the only one that there is.
bool sees_one(const AxisRanges& r) {
  return r.limit == 1 && r.weights != AxisWeights::kLinear &&
         (r.count - 1) * r.scale + r.begin_shift < r.divisor && r.end_shift >= r.divisor;
}

template <class T>
void run(const ResampleArgs& args, const Launch& launch) {
  const int64_t plane = args.rows.count * args.columns.count, count = args.images * plane;
  double divisor = args.divisor;
  if (args.rows.weights == AxisWeights::kPart) divisor *= double(plane);
  const PlaneSizes s{Quotient<uint32_t>(plane), uint32_t(plane), uint32_t(count), divisor};
  constexpr int64_t kOfBlock = int64_t(kPoolingThreads) * kPacksAtOnce * kPack<T>;
  launch_kernel<&resample_planes_kernel<T>>(unsigned((count + kOfBlock - 1) / kOfBlock),
                                            kPoolingThreads, launch, args, s);
}

}  // namespace

bool launch_resample_planes(Float type, const ResampleArgs& args, const Launch& launch) {
  if (args.channels != 1 || !args.aligned || !sees_one(args.rows) || !sees_one(args.columns))
    return false;
  CATENA_FLOAT_SWITCH(type, run<T>(args, launch));
  return true;
}

}  // namespace catena::gpu
