// Scans along one of several axes, and scans that must add in a fixed order.
#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/scan/scan_types.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

template <class A>
__device__ A identity(bool product) {
  return A(product ? 1 : 0);
}

// The inclusive scan over the lanes of a warp.
template <bool kProduct, class A>
__device__ A warp_scan(A value, int lane) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const A other = __shfl_up_sync(kAllLanes, value, offset);
    if (lane >= offset) value = Combine<A, kProduct>()(other, value);
  }
  return value;
}

// A block for each line: tiles of the block's size, in order.
template <bool kProduct, class A, class In, class Out>
__global__ void line_kernel(In input, Out* output, int64_t outer, int64_t count) {
  __shared__ A totals[kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Combine<A, kProduct> combine;
  for (int64_t line = blockIdx.x; line < outer; line += gridDim.x) {
    A carry = identity<A>(kProduct);
    for (int64_t tile = 0; tile < count; tile += kThreads) {
      const int64_t i = tile + threadIdx.x;
      A value = i < count ? A(input[line * count + i]) : identity<A>(kProduct);
      value = warp_scan<kProduct>(value, lane);
      if (lane == 31) totals[warp] = value;
      __syncthreads();
      A before = carry;
      for (int w = 0; w < kWarps; ++w) {
        if (w == warp) value = combine(before, value);
        before = combine(before, totals[w]);
      }
      carry = before;
      if (i < count) output[line * count + i] = Out(value);
      __syncthreads();
    }
  }
}

// A thread for each column of (count, inner).
template <bool kProduct, class A, class In, class Out>
__global__ void column_kernel(In input, Out* output, int64_t outer, int64_t count, int64_t inner) {
  const Combine<A, kProduct> combine;
  for (int64_t column = int64_t(blockIdx.x) * kThreads + threadIdx.x; column < outer * inner;
       column += int64_t(gridDim.x) * kThreads) {
    const int64_t first = column / inner * count * inner + column % inner;
    A sum = identity<A>(kProduct);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = first + i * inner;
      sum = combine(sum, A(input[at]));
      output[at] = Out(sum);
    }
  }
}

constexpr int kStripGroups = 16, kStripRows = 8, kStripThreads = 32 * kStripGroups;

// A block for each strip of 32 columns of (count, inner). Every warp scans the next rows of a tile
// and then adds the sums of the tile's earlier warps. Elements are read and written once.
template <bool kProduct, class A, class In, class Out>
__global__ void __launch_bounds__(kStripThreads)
    strip_kernel(In input, Out* output, int64_t outer, int64_t count, int64_t inner) {
  __shared__ A totals[kStripGroups][32];
  const Combine<A, kProduct> combine;
  const int lane = threadIdx.x % 32, group = threadIdx.x / 32;
  const int64_t strips = (inner + 31) / 32;
  for (int64_t strip = blockIdx.x; strip < outer * strips; strip += gridDim.x) {
    const int64_t column = strip % strips * 32 + lane,
                  base = strip / strips * count * inner + column;
    const int64_t rows = column < inner ? count : 0;
    A carry = identity<A>(kProduct);
    for (int64_t tile = 0; tile < count; tile += kStripGroups * kStripRows) {
      const int64_t first = tile + group * kStripRows;
      A value[kStripRows];
#pragma unroll
      for (int r = 0; r < kStripRows; ++r)
        value[r] = first + r < rows ? A(input[base + (first + r) * inner]) : identity<A>(kProduct);
#pragma unroll
      for (int r = 1; r < kStripRows; ++r) value[r] = combine(value[r - 1], value[r]);
      totals[group][lane] = value[kStripRows - 1];
      __syncthreads();
      A before = carry;
#pragma unroll
      for (int g = 0; g < kStripGroups; ++g) {
        if (g == group) before = carry;
        carry = combine(carry, totals[g][lane]);
      }
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kStripRows; ++r)
        if (first + r < rows) output[base + (first + r) * inner] = Out(combine(before, value[r]));
    }
  }
}

template <bool kProduct>
void run(const ScanArgs& args, const Launch& launch) {
  visit_scan(args, [&](auto input, auto* output) {
    using A = typename RunningType<std::remove_pointer_t<decltype(output)>>::type;
    const auto blocks = [&](int64_t units) {
      const int64_t most = int64_t(launch.multiprocessors) * 32;
      return unsigned(units < most ? units : most);
    };
    if (args.inner == 1)
      line_kernel<kProduct, A><<<blocks(args.outer), kThreads, 0, launch.stream>>>(
          input, output, args.outer, args.count);
    else if (args.inner >= 16 && args.count >= 32)
      strip_kernel<kProduct, A>
          <<<blocks(args.outer * ((args.inner + 31) / 32)), kStripThreads, 0, launch.stream>>>(
              input, output, args.outer, args.count, args.inner);
    else
      column_kernel<kProduct, A>
          <<<blocks((args.outer * args.inner + kThreads - 1) / kThreads), kThreads, 0,
             launch.stream>>>(input, output, args.outer, args.count, args.inner);
  });
}

}  // namespace

void launch_scan(bool product, const ScanArgs& args, const Launch& launch) {
  if (product)
    run<true>(args, launch);
  else
    run<false>(args, launch);
}

}  // namespace catena::gpu
