// Gradients of prelu: x and gy are read once. Blocks write sums of their parts of a channel, which
// a second kernel adds in a fixed order, so that equal calls give equal bits.
#include "backends/cuda/activation/prelu.h"

#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kLeastPlane = 128;  // smaller ones would leave most threads of a block idle
constexpr int64_t kSegment = 16384;   // elements of a plane that a block takes

__host__ __device__ inline int64_t segments_of(const PreluGradArgs& args) {
  return (args.inner + kSegment - 1) / kSegment;
}

// The gradients of an element; returns what it adds to that of the slope.
template <class T>
__device__ Compute<T> element(T x, T gy, Compute<T> slope, T& gx) {
  using C = Compute<T>;
  const C v = widen(x), g = widen(gy);
  const bool above = v >= C(0);
  gx = Narrow<T>::from(above ? g : g * slope);
  return above ? C(0) : g * v;
}

// A block takes a segment of the plane of one channel of one sample.
template <class T, int N>
__global__ void __launch_bounds__(kThreads) plane_kernel(PreluGradArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using P = Pack<T, N>;
  __shared__ C shared[32];
  const int64_t segments = segments_of(args), segment = blockIdx.x % segments;
  const int64_t plane = blockIdx.x / segments;
  const int64_t sample = plane / args.channels, channel = plane % args.channels;
  const int64_t begin = segment * kSegment, left = args.inner - begin;
  const int packs = int((left < kSegment ? left : kSegment) / N);
  const int64_t first = (plane * args.inner + begin) / N;
  const P* x = static_cast<const P*>(args.x) + first;
  const P* gy = static_cast<const P*>(args.gy) + first;
  P* gx = static_cast<P*>(args.gx) + first;
  const C slope = widen(static_cast<const T*>(args.W)[channel]);
  C sum = C(0);
#pragma unroll 2
  for (int i = threadIdx.x; i < packs; i += kThreads) {
    const P a = x[i], b = gy[i];
    P result;
#pragma unroll
    for (int k = 0; k < N; ++k) sum += element(a.v[k], b.v[k], slope, result.v[k]);
    gx[i] = result;
  }
  sum = block_reduce(sum, AddOp(), shared);
  if (threadIdx.x == 0)
    static_cast<C*>(args.partials)[channel * args.parts + sample * segments + segment] = sum;
}

// Packs of channels that the threads of a block share: a power of two, at most 32.
__host__ __device__ inline int width_of(int64_t packs) {
  int width = 1;
  while (width < packs && width < 32) width *= 2;
  return width;
}

// Channels last: a thread takes a pack of channels of some rows.
template <class T, int N>
__global__ void __launch_bounds__(kThreads) column_kernel(PreluGradArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using P = Pack<T, N>;
  __shared__ C shared[kThreads][N];
  const int64_t packs = args.channels / N;
  const int width = width_of(packs), height = kThreads / width;
  const int64_t column = int64_t(blockIdx.x) * width + threadIdx.x % width;
  C sum[N], slope[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    sum[k] = C(0);
    slope[k] = column < packs ? widen(static_cast<const T*>(args.W)[column * N + k]) : C(0);
  }
  if (column < packs) {
    const int64_t step = int64_t(gridDim.y) * height;
#pragma unroll 2
    for (int64_t row = int64_t(blockIdx.y) * height + threadIdx.x / width; row < args.outer;
         row += step) {
      const int64_t at = row * packs + column;
      const P a = static_cast<const P*>(args.x)[at], b = static_cast<const P*>(args.gy)[at];
      P result;
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += element(a.v[k], b.v[k], slope[k], result.v[k]);
      static_cast<P*>(args.gx)[at] = result;
    }
  }
#pragma unroll
  for (int k = 0; k < N; ++k) shared[threadIdx.x][k] = sum[k];
  __syncthreads();
  if (int(threadIdx.x) >= width || column >= packs) return;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    C all = C(0);
    for (int h = 0; h < height; ++h) all += shared[h * width + threadIdx.x][k];
    static_cast<C*>(args.partials)[(column * N + k) * args.parts + blockIdx.y] = all;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) finish_kernel(PreluGradArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ C shared[32];
  const C* partials = static_cast<const C*>(args.partials) + blockIdx.x * args.parts;
  C sum = C(0);
  for (int64_t i = threadIdx.x; i < args.parts; i += kThreads) sum += partials[i];
  sum = block_reduce(sum, AddOp(), shared);
  if (threadIdx.x == 0) static_cast<T*>(args.gW)[blockIdx.x] = Narrow<T>::from(sum);
}

template <class T, int N>
void launch_columns(const PreluGradArgs& args, const Launch& launch) {
  const int64_t packs = args.channels / N, width = width_of(packs);
  const dim3 grid(unsigned((packs + width - 1) / width), unsigned(args.parts));
  launch_kernel<column_kernel<T, N>>(grid, dim3(kThreads), launch, args);
}

template <class T, int N>
void launch_parts(const PreluGradArgs& args, const Launch& launch) {
  if (args.inner == 1) return launch_columns<T, N>(args, launch);
  const unsigned blocks = unsigned(args.outer * args.channels * segments_of(args));
  launch_kernel<plane_kernel<T, N>>(dim3(blocks), dim3(kThreads), launch, args);
}

}  // namespace

int64_t prelu_grad_parts(const PreluGradArgs& args, const Launch& launch) {
  constexpr int64_t kMostBlocks = int64_t(1) << 30;
  if (args.channels == 0 || args.channels > kMostBlocks) return 0;
  if (args.inner == 1) {
    const int64_t most = int64_t(launch.multiprocessors) * 8, wanted = (args.outer + 31) / 32;
    return wanted < most ? wanted : most;
  }
  const int64_t parts = args.outer * segments_of(args);
  return args.inner < kLeastPlane || parts > kMostBlocks / args.channels ? 0 : parts;
}

void launch_prelu_grad(Float type, const PreluGradArgs& args, const Launch& launch) {
  const int64_t row = args.inner == 1 ? args.channels : args.inner;
  CATENA_FLOAT_SWITCH(type, {
    if (args.aligned && row % kPack<T> == 0)
      launch_parts<T, kPack<T>>(args, launch);
    else
      launch_parts<T, 1>(args, launch);
    launch_kernel<finish_kernel<T>>(dim3(unsigned(args.channels)), dim3(kThreads), launch, args);
  })
}

}  // namespace catena::gpu
