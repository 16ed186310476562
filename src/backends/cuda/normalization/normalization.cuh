// How the kernels of batch normalization walk over a batch (outer, channels, inner). A thread keeps
// to its channels, whose constants stay in registers. Sums are added in a fixed order.
#pragma once

#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {
namespace {

constexpr int kWalkThreads = 256;

__device__ inline float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
__device__ inline float root(float v) { return sqrtf(v); }
__device__ inline double root(double v) { return sqrt(v); }

// Where part `part` of a channel's work begins; part `parts` is the end.
__device__ inline int64_t part_begin(int64_t units, int64_t part, int64_t parts) {
  return units * part / parts;
}

// The two walks. A body is constructed for its first channel and handles kChannels of them.
// visit(at) is called for packs at[0], at[1], ... of N elements; element k of a pack belongs to
// channel k % kChannels of the body. All threads of the block call finish(channel, part, parts) at
// the end. A visit loads all of its packs before it uses one: Body::kAhead packs, so that enough
// loads are in flight to use the memory's full rate, then single packs for the rest.
// Body::kResident blocks fit on a multiprocessor at a time.

// Channels first: a block takes a part of the rows of one channel, which are contiguous runs of
// `inner` elements. Grid: channels * parts.
template <int N, class Body, class Args>
__global__ void __launch_bounds__(kWalkThreads, Body::kResident) walk_rows(Args args, int parts) {
  const int64_t channel = blockIdx.x % args.channels, part = blockIdx.x / args.channels;
  const int64_t row_packs = args.inner / N, units = args.outer * row_packs;
  const int64_t end = part_begin(units, part + 1, parts);
  Body body(args, channel, true);
  int64_t i = part_begin(units, part, parts) + threadIdx.x;
  // The pack at `i` of the channel is the pack at `at` of the batch.
  const int64_t row_step = kWalkThreads / row_packs, column_step = kWalkThreads % row_packs;
  const int64_t step = row_step * args.channels * row_packs + column_step;
  const int64_t to_next_row = (args.channels - 1) * row_packs;
  int64_t column = i % row_packs;
  int64_t at = (i / row_packs * args.channels + channel) * row_packs + column;
  const auto next = [&] {
    const int64_t here = at;
    i += kWalkThreads;
    at += step;
    column += column_step;
    if (column >= row_packs) {
      column -= row_packs;
      at += to_next_row;
    }
    return here;
  };
  while (i + (Body::kAhead - 1) * kWalkThreads < end) {
    int64_t ahead[Body::kAhead];
#pragma unroll
    for (int64_t& a : ahead) a = next();
    body.visit(ahead);
  }
  while (i < end) {
    const int64_t one[1] = {next()};
    body.visit(one);
  }
  body.finish(args, channel, int(part), parts);
}

// Channels last (inner is 1): a thread takes N adjacent channels, and `across` threads are side by
// side in a row. The block's lines of threads take the rows in turn. Grid: (packs of channels /
// across, parts).
template <int N, class Body, class Args>
__global__ void __launch_bounds__(kWalkThreads, Body::kResident)
    walk_columns(Args args, int parts, int across) {
  const int64_t row_packs = args.channels / N;
  const int64_t column = int64_t(blockIdx.x) * across + threadIdx.x % across;
  const bool active = column < row_packs;
  const int64_t end = active ? part_begin(args.outer, blockIdx.y + 1, parts) : 0;
  Body body(args, column * N, active);
  const int lines = kWalkThreads / across;
  int64_t row = part_begin(args.outer, blockIdx.y, parts) + threadIdx.x / across;
  for (; row + (Body::kAhead - 1) * lines < end; row += Body::kAhead * lines) {
    int64_t ahead[Body::kAhead];
#pragma unroll
    for (int u = 0; u < Body::kAhead; ++u) ahead[u] = (row + u * lines) * row_packs + column;
    body.visit(ahead);
  }
  for (; row < end; row += lines) {
    const int64_t one[1] = {row * row_packs + column};
    body.visit(one);
  }
  body.finish(args, column * N, int(blockIdx.y), parts, across, active);
}

// How many packs a body of `channels` channels loads ahead from each of `streams` arrays: enough
// for a multiprocessor to have at least 32 KiB in flight, as far as registers allow.
template <int kPackSize, int kChannels>
constexpr int packs_ahead(int streams) {
  if (kPackSize == 1) return streams == 1 ? 8 : 4;
  return streams == 1 ? 4 : kChannels > 4 ? 1 : 2;
}

inline int power_of_two_from(int64_t n, int most) {
  int power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

// How the work of a channel is divided.
struct Walk {
  bool columns, packed;
  int parts;
  int across;       // threads side by side, of columns
  unsigned strips;  // blocks side by side, of columns

  // A channel in that many parts.
  Walk(int64_t channels, int64_t inner, bool aligned, int pack, int parts_) : parts(parts_) {
    columns = inner == 1;
    packed = aligned && (columns ? channels : inner) % pack == 0;
    const int n = packed ? pack : 1;
    across = columns ? power_of_two_from(channels / n, 32) : kWalkThreads;
    strips = columns ? unsigned((channels / n + across - 1) / across) : unsigned(channels);
  }
  // A channel in so many parts that a thread takes `packs` packs, but in no more than make
  // `blocks_each` blocks for a multiprocessor; in one part at least.
  Walk(int64_t outer, int64_t channels, int64_t inner, bool aligned, int pack, int packs,
       int blocks_each, const Launch& launch)
      : Walk(channels, inner, aligned, pack, 1) {
    const int64_t units = columns ? outer : outer * inner / (packed ? pack : 1);
    const int64_t lines = columns ? kWalkThreads / across : kWalkThreads;
    const int64_t wanted = (units + lines * packs - 1) / (lines * packs);
    const int64_t room = int64_t(launch.multiprocessors) * blocks_each / strips;
    const int64_t most = room < 1 ? 1 : room;
    parts = int(wanted < most ? wanted : most);
  }
};

// Runs Body<T, N, kChannels> over the whole batch.
template <class T, template <class, int, int> class Body, class Args>
void run_walk(const Walk& walk, const Args& args, const Launch& launch) {
  constexpr int N = kPack<T>;
  const dim3 grid(walk.strips, unsigned(walk.parts));
  const unsigned blocks = walk.strips * unsigned(walk.parts);
  if (walk.columns && walk.packed)
    walk_columns<N, Body<T, N, N>>
        <<<grid, kWalkThreads, 0, launch.stream>>>(args, walk.parts, walk.across);
  else if (walk.columns)
    walk_columns<1, Body<T, 1, 1>>
        <<<grid, kWalkThreads, 0, launch.stream>>>(args, walk.parts, walk.across);
  else if (walk.packed)
    walk_rows<N, Body<T, N, 1>><<<blocks, kWalkThreads, 0, launch.stream>>>(args, walk.parts);
  else
    walk_rows<1, Body<T, 1, 1>><<<blocks, kWalkThreads, 0, launch.stream>>>(args, walk.parts);
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

// Merges the results of threads for a channel. Value has n, a and b of type C, and merge(other).

template <class Value>
__device__ Value warp_merge(Value v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    Value other;
    other.n = __shfl_down_sync(kAllLanes, v.n, offset);
    other.a = __shfl_down_sync(kAllLanes, v.a, offset);
    other.b = __shfl_down_sync(kAllLanes, v.b, offset);
    v.merge(other);
  }
  return v;  // valid in the first lane
}

// Over all threads of the block; valid in the first thread.
template <class Value>
__device__ Value block_merge(Value v) {
  __shared__ Value shared[kWalkThreads / 32];
  v = warp_merge(v);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  for (int warp = 1; threadIdx.x == 0 && warp < kWalkThreads / 32; ++warp) v.merge(shared[warp]);
  return v;
}

// Over the lines of the block; valid in the first one. `values` belong to the thread's channels.
template <class C, int kChannels, class Value>
__device__ void line_merge(Value (&values)[kChannels], int across) {
  __shared__ C n[kWalkThreads], a[kChannels][kWalkThreads], b[kChannels][kWalkThreads];
  const int me = threadIdx.x, line = threadIdx.x / across;
  for (int half = kWalkThreads / across / 2; half >= 1; half /= 2) {
    // The upper half of the remaining lines passes its values to the lower half.
    if (line >= half && line < 2 * half) {
      n[me] = values[0].n;
#pragma unroll
      for (int k = 0; k < kChannels; ++k) {
        a[k][me] = values[k].a;
        b[k][me] = values[k].b;
      }
    }
    __syncthreads();
    if (line < half) {
      const int other = me + half * across;
#pragma unroll
      for (int k = 0; k < kChannels; ++k) values[k].merge({n[other], a[k][other], b[k][other]});
    }
    __syncthreads();
  }
}

// partials[0][channel][part] = a, partials[1][channel][part] = b.
template <class C, class Value>
__device__ void store_partial(void* partials, int64_t channels, int64_t channel, int part,
                              int parts, const Value& v) {
  C* to = static_cast<C*>(partials) + channel * parts + part;
  to[0] = v.a;
  to[channels * parts] = v.b;
}

// The end of a walk: stores values[kChannels].
template <class C, int kChannels, class Value>
__device__ void store_rows(void* partials, int64_t channels, int64_t channel, int part, int parts,
                           Value (&values)[kChannels]) {
  const Value v = block_merge(values[0]);
  if (threadIdx.x == 0) store_partial<C>(partials, channels, channel, part, parts, v);
}
template <class C, int kChannels, class Value>
__device__ void store_columns(void* partials, int64_t channels, int64_t channel, int part,
                              int parts, int across, bool active, Value (&values)[kChannels]) {
  line_merge<C>(values, across);
  if (!active || threadIdx.x >= across) return;
  for (int k = 0; k < kChannels; ++k)
    store_partial<C>(partials, channels, channel + k, part, parts, values[k]);
}

// One warp merges the results of all parts of a channel; valid in the first lane. Parts begin at
// multiples of `unit` elements.
template <class C, class Value, class Args>
__device__ Value all_parts(const Args& args, int64_t channel, int64_t unit) {
  const int64_t units = args.outer * args.inner / unit;
  const C* from = static_cast<const C*>(args.partials) + channel * args.splits;
  Value v{};
#pragma unroll 4  // so that loads do not wait for one another
  for (int part = threadIdx.x % 32; part < args.splits; part += 32) {
    const int64_t count =
        part_begin(units, part + 1, args.splits) - part_begin(units, part, args.splits);
    v.merge({C(count * unit), from[part], from[part + args.channels * args.splits]});
  }
  return warp_merge(v);
}

constexpr int kFinishThreads = 128;  // a warp for each of four channels
inline unsigned finish_blocks(int64_t channels) {
  constexpr int kChannels = kFinishThreads / 32;
  return unsigned((channels + kChannels - 1) / kChannels);
}
__device__ inline int64_t finish_channel() {
  return int64_t(blockIdx.x) * (kFinishThreads / 32) + threadIdx.x / 32;
}

}  // namespace
}  // namespace catena::gpu
