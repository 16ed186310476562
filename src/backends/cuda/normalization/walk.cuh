// Walk of the kernels of batch normalization over a batch (outer, channels, inner). A thread keeps
// to its channels, whose constants stay in registers.
#pragma once

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/normalization/normalization.h"

namespace catena::gpu {
namespace {

// Blocks of a walk. kResidentBlocks of them run on a multiprocessor at a time.
constexpr int kWalkThreads = 256, kResidentBlocks = 4;

__device__ inline float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
__device__ inline float root(float v) { return sqrtf(v); }
__device__ inline double root(double v) { return sqrt(v); }

// A channel's units of work, dealt out to `parts` parts in turn, `chunk` units at a time. All
// blocks then read the same stretch of the batch at a time, and its end is what the cache holds
// when they are done.
struct Deal {
  int64_t units;
  int parts, chunk;

  __device__ int64_t size(int part) const {
    const int64_t round = int64_t(parts) * chunk, full = units / round;
    const int64_t rest = units % round - int64_t(part) * chunk;
    return full * chunk + (rest < 0 ? 0 : rest < chunk ? rest : chunk);
  }
};

// Which end of the batch a walk begins at. The second kernel of a pass goes backward: it begins
// with what the first one has left in the cache, and leaves the beginning of its results there for
// the kernel that reads them next.
enum class Order { kForward, kBackward };

// The two walks. A body keeps constants for kChannels elements of a pack; it has one where the
// whole pack is of one channel. visit(at) is called for packs at[0], at[1], ... of N elements, of
// which element k has the constants k % kChannels. A visit loads all of its packs before it uses
// one: Body::kAhead packs, so that enough loads are in flight to use the memory's full rate, then
// single packs for the rest. All threads of the block call finish at the end.

// Channels first: a block takes a part of the rows of one channel, which are contiguous runs of
// `inner` elements. Grid: channels * parts.
template <int N, class Body, class Args>
__global__ void __launch_bounds__(kWalkThreads, kResidentBlocks) walk_rows(Args args, int parts) {
  wait_for_previous_kernel();
  constexpr bool kBackward = Body::kOrder == Order::kBackward;
  const int64_t channel = blockIdx.x % args.channels, part = blockIdx.x / args.channels;
  const int64_t row_packs = args.inner / N, packs = args.outer * row_packs;
  Body body(args, channel, 1, true);
  const int64_t stride = int64_t(parts) * kWalkThreads;
  int64_t i = part * kWalkThreads + threadIdx.x;
  // The pack at `first` of the channel is the pack at `at` of the batch.
  const int64_t first = kBackward ? packs - 1 - i : i;
  const int64_t row_step = stride / row_packs, column_step = stride % row_packs;
  const int64_t step = row_step * args.channels * row_packs + column_step;
  const int64_t to_next_row = (args.channels - 1) * row_packs;
  int64_t column = first % row_packs;
  int64_t at = (first / row_packs * args.channels + channel) * row_packs + column;
  const auto next = [&] {
    const int64_t here = at;
    i += stride;
    if (kBackward) {
      at -= step;
      column -= column_step;
      if (column < 0) {
        column += row_packs;
        at -= to_next_row;
      }
    } else {
      at += step;
      column += column_step;
      if (column >= row_packs) {
        column -= row_packs;
        at += to_next_row;
      }
    }
    return here;
  };
  while (i + (Body::kAhead - 1) * stride < packs) {
    int64_t ahead[Body::kAhead];
#pragma unroll
    for (int64_t& a : ahead) a = next();
    body.visit(ahead);
  }
  while (i < packs) {
    const int64_t one[1] = {next()};
    body.visit(one);
  }
  body.finish(args, channel, int(part), parts);
}

// Rows of channels * inner elements, where inner is 1 (channels last) or so small that the runs of
// a channel do not fill packs (7 x 7 images with channels first): a thread takes N adjacent
// positions of the row, and `across` threads are side by side. The block's lines of threads take
// one row each at a time. Grid: (packs of a row / across, parts).
template <int N, class Body, class Args>
__global__ void __launch_bounds__(kWalkThreads, kResidentBlocks)
    walk_columns(Args args, int parts, int across) {
  wait_for_previous_kernel();
  constexpr bool kBackward = Body::kOrder == Order::kBackward;
  const int64_t row_packs = args.channels * args.inner / N;
  const int64_t column = int64_t(blockIdx.x) * across + threadIdx.x % across;
  const bool active = column < row_packs;
  const int64_t rows = active ? args.outer : 0;
  Body body(args, column * N, args.inner, active);
  const int lines = kWalkThreads / across, part = int(blockIdx.y);
  const int64_t stride = int64_t(parts) * lines;
  const int64_t begin = column + (kBackward ? (args.outer - 1) * row_packs : 0);
  const int64_t step = kBackward ? -row_packs : row_packs;
  int64_t row = int64_t(part) * lines + threadIdx.x / across;
  for (; row + (Body::kAhead - 1) * stride < rows; row += Body::kAhead * stride) {
    int64_t ahead[Body::kAhead];
#pragma unroll
    for (int u = 0; u < Body::kAhead; ++u) ahead[u] = begin + (row + u * stride) * step;
    body.visit(ahead);
  }
  for (; row < rows; row += stride) {
    const int64_t one[1] = {begin + row * step};
    body.visit(one);
  }
  body.finish(args, column * N, part, parts, across, active);
}

// How many packs of so many bytes a body loads ahead from each of `streams` arrays: for whole packs
// enough for a multiprocessor to have at least 32 KiB in flight, as far as registers allow.
constexpr int packs_ahead(int pack_bytes, int streams) {
  return (pack_bytes == 16 ? 4 : 8) / streams;
}

inline int power_of_two_from(int64_t n, int most) {
  int power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

// Elements of a pack in walks over columns: of 16-bit floats four, since a thread has no registers
// for the constants of eight channels and for enough loads in flight.
template <class T>
constexpr int kColumnPack = sizeof(T) == 2 ? 4 : kPack<T>;

// Shorter runs of a channel are walked by columns if they do not fill packs, unless there are few
// of them: then the results of so many positions would be as large as the batch.
constexpr int64_t kShortRun = 64, kLeastRuns = 16;

// How the work of a channel is divided.
struct Walk {
  bool columns;
  int pack;  // elements
  int parts = 1;
  int across;       // threads side by side, of columns
  unsigned strips;  // blocks side by side
  int64_t units;    // that the parts share: packs of a channel, of columns rows

  Walk(int64_t outer, int64_t channels, int64_t inner, bool aligned, int row_pack,
       int column_pack) {
    const int64_t row = channels * inner;
    const bool short_runs = inner < kShortRun && inner % row_pack != 0 && outer >= kLeastRuns;
    columns = inner == 1 || (short_runs && row % column_pack == 0 && aligned);
    pack = columns ? column_pack : row_pack;
    if (!aligned || (columns ? row : inner) % pack != 0) pack = 1;
    across = columns ? power_of_two_from(row / pack, 32) : kWalkThreads;
    strips = columns ? unsigned((row / pack + across - 1) / across) : unsigned(channels);
    units = columns ? outer : outer * inner / pack;
  }
  // In so many parts that a thread takes `packs` packs, but in no more than run at a time, and in
  // one at least. Blocks of a second wave would go over the batch once more, and its last ones
  // would use the memory alone: that costs more than the places that a wave leaves empty, unless
  // that is half of them.
  Walk& divide(int packs, const Launch& launch) {
    const int64_t of_block = int64_t(chunk()) * packs;
    const int64_t wanted = (units + of_block - 1) / of_block;
    const int64_t most = int64_t(launch.multiprocessors) * kResidentBlocks / strips;
    parts = int(most < 1 ? 1 : wanted < most ? wanted : most);
    return *this;
  }
  // Units that a block takes at a time.
  int chunk() const { return columns ? kWalkThreads / across : kWalkThreads; }
};

template <class T>
Walk walk_of(int64_t outer, int64_t channels, int64_t inner, bool aligned) {
  return {outer, channels, inner, aligned, kPack<T>, kColumnPack<T>};
}
template <class T, class Args>
Walk walk_of(const Args& args) {
  return walk_of<T>(args.outer, args.channels, args.inner, args.aligned);
}

// Runs Body<T, N, kChannels> over the whole batch.
template <class T, template <class, int, int> class Body, class Args>
void run_walk(const Walk& walk, const Args& args, const Launch& launch) {
  constexpr int N = kPack<T>, M = kColumnPack<T>;
  const dim3 grid(walk.strips, unsigned(walk.parts));
  const unsigned blocks = walk.strips * unsigned(walk.parts);
  if (walk.columns && walk.pack == M)
    launch_kernel<walk_columns<M, Body<T, M, M>, Args>>(grid, kWalkThreads, launch, args,
                                                        walk.parts, walk.across);
  else if (walk.columns)
    launch_kernel<walk_columns<1, Body<T, 1, 1>, Args>>(grid, kWalkThreads, launch, args,
                                                        walk.parts, walk.across);
  else if (walk.pack == N)
    launch_kernel<walk_rows<N, Body<T, N, 1>, Args>>(blocks, kWalkThreads, launch, args,
                                                     walk.parts);
  else
    launch_kernel<walk_rows<1, Body<T, 1, 1>, Args>>(blocks, kWalkThreads, launch, args,
                                                     walk.parts);
}

// Calls f(k, channel) for elements k of a pack whose first is at position `first` of its row, where
// each channel has `inner` positions.
template <int kElements, class F>
__device__ void each_channel(int64_t first, int64_t inner, F f) {
  if (inner == 1) {
#pragma unroll
    for (int k = 0; k < kElements; ++k) f(k, first + k);
    return;
  }
  int64_t channel = first / inner, position = first % inner;
#pragma unroll
  for (int k = 0; k < kElements; ++k) {
    f(k, channel);
    if (++position < inner) continue;
    position = 0;
    ++channel;
  }
}

template <class T, int N>
__device__ Pack<T, N> load_pack(const void* base, int64_t i) {
  return static_cast<const Pack<T, N>*>(base)[i];
}
template <class T, int N, int U>
__device__ void load_packs(const void* base, const int64_t (&at)[U], Pack<T, N> (&packs)[U]) {
#pragma unroll
  for (int u = 0; u < U; ++u) packs[u] = load_pack<T, N>(base, at[u]);
}
template <class C>
__device__ C number_at(const void* base, int64_t channel, C otherwise) {
  return base == nullptr ? otherwise : static_cast<const C*>(base)[channel];
}

// The shift of y = (x - mean) * scale + shift: beta, and what rounding has taken off the mean.
template <class C>
__device__ C shift_at(const void* beta, const void* mean_rest, int64_t channel, C scale) {
  return fused(-number_at(mean_rest, channel, C(0)), scale, number_at(beta, channel, C(0)));
}

}  // namespace
}  // namespace catena::gpu
