// The results of a walk's threads and blocks for each channel, and how they are merged. They are
// added in a fixed order, so that equal launches give equal bits.
#pragma once

#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/normalization/walk.cuh"

namespace catena::gpu {
namespace {

// Merges the results of threads for a channel. Value has n and kNumbers numbers v[] of type C,
// merge(other), and store(args, channel), which makes of the whole what the kernel is for.

template <class Value>
__device__ Value warp_merge(Value v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    Value other;
    other.n = __shfl_down_sync(kAllLanes, v.n, offset);
#pragma unroll
    for (int i = 0; i < Value::kNumbers; ++i)
      other.v[i] = __shfl_down_sync(kAllLanes, v.v[i], offset);
    v.merge(other);
  }
  return v;  // valid in the first lane
}

// Over groups of adjacent threads, whole warps; valid in the first thread of each. All threads of
// the block call it; there are kWalkThreads at most.
template <class Value>
__device__ Value group_merge(Value v, int threads) {
  __shared__ Value shared[kWalkThreads / 32];
  v = warp_merge(v);
  if (threads == 32) return v;
  const int warp = int(threadIdx.x) / 32, warps = threads / 32;
  if (threadIdx.x % 32 == 0) shared[warp] = v;
  __syncthreads();
  for (int other = 1; threadIdx.x % threads == 0 && other < warps; ++other)
    v.merge(shared[warp + other]);
  return v;
}

// Over the lines of the block; valid in the first one. `values` belong to the thread's channels.
template <class C, int kChannels, class Value>
__device__ void line_merge(Value (&values)[kChannels], int across) {
  constexpr int kNumbers = Value::kNumbers;
  __shared__ C n[kWalkThreads], v[kNumbers][kChannels][kWalkThreads];
  const int me = threadIdx.x, line = threadIdx.x / across;
  for (int half = kWalkThreads / across / 2; half >= 1; half /= 2) {
    // The upper half of the remaining lines passes its values to the lower half.
    if (line >= half && line < 2 * half) {
      n[me] = values[0].n;
#pragma unroll
      for (int k = 0; k < kChannels; ++k)
#pragma unroll
        for (int i = 0; i < kNumbers; ++i) v[i][k][me] = values[k].v[i];
    }
    __syncthreads();
    if (line < half) {
      const int from = me + half * across;
#pragma unroll
      for (int k = 0; k < kChannels; ++k) {
        Value other;
        other.n = n[from];
#pragma unroll
        for (int i = 0; i < kNumbers; ++i) other.v[i] = v[i][k][from];
        values[k].merge(other);
      }
    }
    __syncthreads();
  }
}

// The partial results of a walk: partials[i][row][part] = v[i]. A row is a channel, in walks over
// columns a position of a row of the batch.
template <class C, class Value>
__device__ void store_partial(void* partials, int64_t rows, int64_t row, int part, int parts,
                              const Value& value) {
  C* to = static_cast<C*>(partials) + row * parts + part;
#pragma unroll
  for (int i = 0; i < Value::kNumbers; ++i) to[i * rows * parts] = value.v[i];
}

// The end of a walk: stores values[kChannels].
template <class C, int kChannels, class Value, class Args>
__device__ void store_rows(const Args& args, int64_t channel, int part, int parts,
                           Value (&values)[kChannels]) {
  const Value v = group_merge(values[0], kWalkThreads);
  if (threadIdx.x == 0) store_partial<C>(args.partials, args.channels, channel, part, parts, v);
}
template <class C, int kChannels, class Value, class Args>
__device__ void store_columns(const Args& args, int64_t first, int part, int parts, int across,
                              bool active, Value (&values)[kChannels]) {
  line_merge<C>(values, across);
  if (!active || threadIdx.x >= across) return;
  for (int k = 0; k < kChannels; ++k)
    store_partial<C>(args.partials, args.channels * args.inner, first + k, part, parts, values[k]);
}

constexpr int kFinishThreads = 128;  // at least, for one or several channels

// How partial results add up to those of the channels.
struct Finish {
  Deal deal;    // of a row's units
  int unit;     // elements
  int rows;     // of a channel
  int threads;  // of a channel: as many as there is work for

  template <class Args>
  Finish(const Walk& walk, const Args& args)
      : deal{walk.units, args.splits, walk.chunk()},
        unit(walk.columns ? 1 : walk.pack),
        rows(walk.columns ? int(args.inner) : 1),
        threads(32 * power_of_two_from((int64_t(rows) * deal.parts + 63) / 64, kWalkThreads / 32)) {
  }
  int block() const { return threads > kFinishThreads ? threads : kFinishThreads; }
  unsigned blocks(int64_t channels) const {
    const int64_t of_block = block() / threads;
    return unsigned((channels + of_block - 1) / of_block);
  }
};

// Merges the partial results of each channel.
template <class C, class Value, class Args>
__global__ void __launch_bounds__(kWalkThreads) finish_channels(Args args, Finish f) {
  wait_for_previous_kernel();
  const int group = int(threadIdx.x) / f.threads, lane = int(threadIdx.x) % f.threads;
  const int64_t channel = int64_t(blockIdx.x) * (int(blockDim.x) / f.threads) + group;
  const bool active = channel < args.channels;
  const int count = f.rows * f.deal.parts;
  const C* from = static_cast<const C*>(args.partials) + channel * count;
  Value v{};
#pragma unroll 4  // so that loads do not wait for one another
  for (int i = active ? lane : count; i < count; i += f.threads) {
    const int part = f.rows == 1 ? i : i % f.deal.parts;
    Value other;
    other.n = C(f.deal.size(part) * f.unit);
#pragma unroll
    for (int k = 0; k < Value::kNumbers; ++k) other.v[k] = from[i + k * args.channels * count];
    v.merge(other);
  }
  v = group_merge(v, f.threads);
  if (active && lane == 0) v.store(args, channel);
}

// Runs Body over the batch in args.splits parts, then merges their results.
template <class T, template <class, int, int> class Body, class Value, class Args>
void run_sums(const Args& args, const Launch& launch) {
  Walk walk = walk_of<T>(args);
  walk.parts = args.splits;
  run_walk<T, Body>(walk, args, launch);
  const Finish finish(walk, args);
  launch_kernel<finish_channels<Compute<T>, Value, Args>>(finish.blocks(args.channels),
                                                          finish.block(), launch, args, finish);
}

}  // namespace
}  // namespace catena::gpu
