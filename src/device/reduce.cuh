// Reductions over any set of axes. NVRTC only. Deterministic: every result is combined in an order
// that depends on shapes alone.
//
// The text before this file defines the types Input, Output (storage) and Accumulator, and the
// struct Reduction with identity(), map(Input), combine(a, b) and kDivides (whether the divisor
// applies).
#pragma once

#include "device/args.h"
#include "device/prelude.cuh"
#include "device/shuffle.cuh"

namespace catena {
namespace jit {

constexpr int kReduceVector = 16 / int(sizeof(Input));
constexpr int kInFlight = 4;
// Vectors of a column that a thread loads before it adds them: as many as leave registers for
// kReduceBlocks.
constexpr int kColumnsInFlight = kReduceVector > 8 ? 4 : 8;
union InputVector {
  uint4 raw;
  Input value[kReduceVector];
};

CATENA_FN Accumulator reduce_pair(Accumulator a, Accumulator b) { return Reduction::combine(a, b); }

// Combines the values of 2^shift adjacent threads; the first of them gets the result. All threads
// of the block must take part.
CATENA_FN Accumulator reduce_group(Accumulator x, int shift) {
  __shared__ Accumulator warps[kReduceThreads / 32];
  const int group = 1 << shift;
  for (int distance = (group < 32 ? group : 32) / 2; distance > 0; distance /= 2) {
    x = reduce_pair(x, shuffle_down(x, distance));
  }
  if (group > 32) {
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x % group == 0) {
      for (int w = 1; w < group / 32; ++w) x = reduce_pair(x, warps[threadIdx.x / 32 + w]);
    }
  }
  return x;
}

// A mean is the quotient, as on the CPU: a product with 1 / n would round twice.
template <class T>
CATENA_FN T divided(const ReduceArgs& a, T x) {
  if constexpr (Reduction::kDivides) {
    if (a.divisor != 1) return m::divide(x, T(a.divisor));
  }
  return x;
}

// Result number `output`, which is `offset` bytes into the output array.
CATENA_FN void store_result(const ReduceArgs& a, int64_t offset, Accumulator x) {
  Output* place = reinterpret_cast<Output*>(static_cast<char*>(a.output) + offset);
  x = divided(a, x);
  if (a.accumulate) x = Accumulator(x + widen(*place));
  *place = convert<Output>(x);
}
CATENA_FN void store_result(const ReduceArgs& a, int64_t output, int64_t offset, Accumulator x) {
  if (a.splits > 1)
    static_cast<Accumulator*>(a.partial)[int64_t(blockIdx.y) * a.outputs + output] = x;
  else
    store_result(a, offset, x);
}

// The offset of element r of an output.
CATENA_FN int64_t reduced_offset(const ReduceArgs& a, int64_t r) {
  if (a.reduced_dims == 1) return r * a.reduced_stride[0];
  int64_t offset = 0;
  uint32_t rest = uint32_t(r);
  for (int d = 0; d < a.reduced_dims; ++d) {
    uint32_t at;
    rest = divide(rest, a.reduced_extent[d], at);
    offset += at * a.reduced_stride[d];
  }
  return offset;
}

CATENA_FN void add_vector(Accumulator* parts, const InputVector& loaded) {
#pragma unroll
  for (int v = 0; v < kReduceVector; ++v)
    parts[v] = reduce_pair(parts[v], Reduction::map(loaded.value[v]));
}

// One thread's share of the elements of an output, 16 bytes at a time: reduced_extent[0] and
// reduced_stride[0] count vectors. The splits take tiles in turn, so that blocks that run at the
// same time read adjacent memory.
CATENA_FN Accumulator reduce_vectors(const ReduceArgs& a, const char* p, int lane, int group) {
  Accumulator parts[kReduceVector];
#pragma unroll
  for (int v = 0; v < kReduceVector; ++v) parts[v] = Reduction::identity();
  const int64_t vectors = a.reduced / kReduceVector, tile = int64_t(kInFlight) * group;
#pragma unroll 1
  for (int64_t start = blockIdx.y * tile; start < vectors; start += a.splits * tile) {
    const int64_t i = start + lane;
    InputVector loaded[kInFlight];
    if (start + tile <= vectors) {
#pragma unroll
      for (int u = 0; u < kInFlight; ++u)
        loaded[u].raw = *reinterpret_cast<const uint4*>(p + reduced_offset(a, i + u * group));
#pragma unroll
      for (int u = 0; u < kInFlight; ++u) add_vector(parts, loaded[u]);
    } else {
#pragma unroll
      for (int u = 0; u < kInFlight; ++u) {
        if (i + u * group < vectors)
          loaded[u].raw = *reinterpret_cast<const uint4*>(p + reduced_offset(a, i + u * group));
      }
#pragma unroll
      for (int u = 0; u < kInFlight; ++u) {
        if (i + u * group < vectors) add_vector(parts, loaded[u]);
      }
    }
  }
  // The remainder of a single contiguous dimension.
  if (blockIdx.y == 0) {
    for (int64_t r = vectors * kReduceVector + lane; r < a.reduced; r += group)
      parts[0] = reduce_pair(parts[0], Reduction::map(reinterpret_cast<const Input*>(p)[r]));
  }
  Accumulator x = parts[0];
#pragma unroll
  for (int v = 1; v < kReduceVector; ++v) x = reduce_pair(x, parts[v]);
  return x;
}

// The same one element at a time; each split is a range of elements.
CATENA_FN Accumulator reduce_elements(const ReduceArgs& a, const char* p, int lane, int group) {
  Accumulator x = Reduction::identity();
  const int64_t begin = int64_t(blockIdx.y) * a.per_split;
  const int64_t end = begin + a.per_split < a.reduced ? begin + a.per_split : a.reduced;
  int64_t r = begin + lane;
#pragma unroll 1
  for (; r + (kInFlight - 1) * group < end; r += kInFlight * group) {
    Input loaded[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u)
      loaded[u] = *reinterpret_cast<const Input*>(p + reduced_offset(a, r + u * group));
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) x = reduce_pair(x, Reduction::map(loaded[u]));
  }
#pragma unroll 1
  for (; r < end; r += group)
    x = reduce_pair(x, Reduction::map(*reinterpret_cast<const Input*>(p + reduced_offset(a, r))));
  return x;
}

// 2^group_shift threads share an output. With vectors its elements are in aligned vectors.
CATENA_KERNEL __launch_bounds__(kReduceThreads)
    catena_reduce_rows(const __grid_constant__ ReduceArgs a) {
  wait_for_previous_kernel();
  const int group = 1 << a.group_shift, lane = threadIdx.x & (group - 1);
  const int64_t output =
      int64_t(blockIdx.x) * (kReduceThreads >> a.group_shift) + (threadIdx.x >> a.group_shift);
  Accumulator x = Reduction::identity();
  int64_t result_offset = 0;
  if (output < a.outputs) {
    int64_t offset = 0;
    uint32_t rest = uint32_t(output);
    for (int d = 0; d < a.kept_dims; ++d) {
      uint32_t at;
      rest = divide(rest, a.kept[d], at);
      offset += at * a.kept_stride[d];
      result_offset += at * a.result_stride[d];
    }
    const char* p = static_cast<const char*>(a.input) + offset;
    x = a.vectors ? reduce_vectors(a, p, lane, group) : reduce_elements(a, p, lane, group);
  }
  x = reduce_group(x, a.group_shift);
  if (lane == 0 && output < a.outputs) store_result(a, output, result_offset, x);
}

// Adds a batch of vectors, `height` rows apart, from row r on: all of them or, where !kAll, those
// before `end`.
template <bool kAll>
CATENA_FN void add_column_vectors(Accumulator* parts, const ReduceArgs& a, const char* p, int64_t r,
                                  int height, int64_t end) {
  InputVector loaded[kColumnsInFlight];
#pragma unroll
  for (int u = 0; u < kColumnsInFlight; ++u) {
    if (kAll || r + u * height < end)
      loaded[u].raw = *reinterpret_cast<const uint4*>(p + reduced_offset(a, r + u * height));
  }
#pragma unroll
  for (int u = 0; u < kColumnsInFlight; ++u) {
    if (kAll || r + u * height < end) add_vector(parts, loaded[u]);
  }
}

// The innermost kept dimension is contiguous. 2^group_shift threads are along it, a vector each,
// and the others along the reduced elements; their partial results are combined in shared memory.
CATENA_KERNEL __launch_bounds__(kReduceThreads, kReduceBlocks)
    catena_reduce_columns(const __grid_constant__ ReduceArgs a) {
  wait_for_previous_kernel();
  __shared__ Accumulator shared[kReduceThreads * kReduceVector];
  const int width = 1 << a.group_shift, lane = threadIdx.x & (width - 1),
            span = width * kReduceVector;
  const int height = kReduceThreads >> a.group_shift, first = threadIdx.x >> a.group_shift;
  uint32_t block;
  uint32_t outer = divide(blockIdx.x, a.blocks, block);
  const int64_t column = int64_t(block) * span;
  const int64_t left = int64_t(a.kept[0].divisor) - column;
  const int count = left < span ? int(left) : span;
  const int64_t output = int64_t(outer) * a.kept[0].divisor + column;
  int64_t offset = column * int64_t(sizeof(Input)), result_offset = column * a.result_stride[0];
  for (int d = 1; d < a.kept_dims; ++d) {
    uint32_t at;
    outer = divide(outer, a.kept[d], at);
    offset += at * a.kept_stride[d];
    result_offset += at * a.result_stride[d];
  }
  const char* p = static_cast<const char*>(a.input) + offset;
  const int64_t begin = int64_t(blockIdx.y) * a.per_split;
  const int64_t end = begin + a.per_split < a.reduced ? begin + a.per_split : a.reduced;
  Accumulator parts[kReduceVector];
#pragma unroll
  for (int v = 0; v < kReduceVector; ++v) parts[v] = Reduction::identity();
  if (a.vectors) {
    if (lane * kReduceVector < count) {
      p += lane * 16;
      const int batch = kColumnsInFlight * height;
      int64_t r = begin + first;
#pragma unroll 1
      for (; r + batch - height < end; r += batch)
        add_column_vectors<true>(parts, a, p, r, height, end);
      if (r < end) add_column_vectors<false>(parts, a, p, r, height, end);
    }
  } else {
#pragma unroll 1
    for (int64_t r = begin + first; r < end; r += height) {
      const Input* row = reinterpret_cast<const Input*>(p + reduced_offset(a, r));
#pragma unroll
      for (int v = 0; v < kReduceVector; ++v) {
        if (v * width + lane < count)
          parts[v] = reduce_pair(parts[v], Reduction::map(row[v * width + lane]));
      }
    }
  }
#pragma unroll
  for (int v = 0; v < kReduceVector; ++v) {
    const int at = a.vectors ? lane * kReduceVector + v : v * width + lane;
    shared[first * span + at] = parts[v];
  }
  __syncthreads();
  for (int c = threadIdx.x; c < count; c += kReduceThreads) {
    Accumulator x = shared[c];
    for (int h = 1; h < height; ++h) x = reduce_pair(x, shared[h * span + c]);
    store_result(a, output + c, result_offset + c * a.result_stride[0], x);
  }
}

// Few elements for each of many outputs, whose innermost dimension is contiguous. A thread computes
// one output or a vector of adjacent ones. `blocks` divides by the threads along the innermost
// dimension.
template <int kOutputs>
CATENA_FN void reduce_short(const ReduceArgs& a) {
  const int64_t place = int64_t(blockIdx.x) * kReduceThreads + threadIdx.x;
  if (place * kOutputs >= a.outputs) return;
  uint32_t lane;
  uint32_t outer = divide(uint32_t(place), a.blocks, lane);
  const int64_t column = int64_t(lane) * kOutputs;
  int64_t offset = column * int64_t(sizeof(Input)), result_offset = column * a.result_stride[0];
  for (int d = 1; d < a.kept_dims; ++d) {
    uint32_t at;
    outer = divide(outer, a.kept[d], at);
    offset += at * a.kept_stride[d];
    result_offset += at * a.result_stride[d];
  }
  union Loaded {
    Input value[kOutputs];
    uint4 raw;
  };
  const char* p = static_cast<const char*>(a.input) + offset;
  Accumulator parts[kOutputs];
#pragma unroll
  for (int v = 0; v < kOutputs; ++v) parts[v] = Reduction::identity();
#pragma unroll 1
  for (int64_t r = 0; r < a.reduced; r += kInFlight) {
    Loaded loaded[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      if (r + u >= a.reduced) break;
      const char* from = p + reduced_offset(a, r + u);
      if constexpr (kOutputs > 1)
        loaded[u].raw = *reinterpret_cast<const uint4*>(from);
      else
        loaded[u].value[0] = *reinterpret_cast<const Input*>(from);
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      if (r + u >= a.reduced) break;
#pragma unroll
      for (int v = 0; v < kOutputs; ++v)
        parts[v] = reduce_pair(parts[v], Reduction::map(loaded[u].value[v]));
    }
  }
  if constexpr (sizeof(Output) * kOutputs == 16) {
    char* to = static_cast<char*>(a.output) + result_offset;
    const bool together = a.result_stride[0] == int64_t(sizeof(Output)) && !a.accumulate;
    if (together && reinterpret_cast<uint64_t>(to) % 16 == 0) {
      union {
        Output value[kOutputs];
        uint4 raw;
      } stored;
#pragma unroll
      for (int v = 0; v < kOutputs; ++v) stored.value[v] = convert<Output>(divided(a, parts[v]));
      *reinterpret_cast<uint4*>(to) = stored.raw;
      return;
    }
  }
#pragma unroll
  for (int v = 0; v < kOutputs; ++v)
    store_result(a, result_offset + v * a.result_stride[0], parts[v]);
}

CATENA_KERNEL __launch_bounds__(kReduceThreads)
    catena_reduce_short(const __grid_constant__ ReduceArgs a) {
  wait_for_previous_kernel();
  if (a.vectors)
    reduce_short<kReduceVector>(a);
  else
    reduce_short<1>(a);
}

// Combines the partial results of all splits, with 2^group_shift threads for each output. Adjacent
// threads have adjacent outputs, whose partial results are adjacent too.
CATENA_KERNEL __launch_bounds__(kReduceThreads)
    catena_reduce_finish(const __grid_constant__ ReduceArgs a) {
  wait_for_previous_kernel();
  __shared__ Accumulator shared[kReduceThreads];
  const int group = 1 << a.group_shift, width = kReduceThreads >> a.group_shift,
            lane = threadIdx.x / width;
  const int64_t output = int64_t(blockIdx.x) * width + threadIdx.x % width;
  Accumulator x = Reduction::identity();
  if (output < a.outputs) {
    const Accumulator* partial = static_cast<const Accumulator*>(a.partial) + output;
#pragma unroll 8
    for (int s = lane; s < a.splits; s += group) x = reduce_pair(x, partial[s * a.outputs]);
  }
  for (int half = group / 2; half > 0; half /= 2) {
    shared[threadIdx.x] = x;
    __syncthreads();
    if (lane < half) x = reduce_pair(x, shared[threadIdx.x + half * width]);
    __syncthreads();
  }
  if (lane == 0 && output < a.outputs) {
    int64_t offset = 0;
    uint32_t rest = uint32_t(output);
    for (int d = 0; d < a.kept_dims; ++d) {
      uint32_t at;
      rest = divide(rest, a.kept[d], at);
      offset += at * a.result_stride[d];
    }
    store_result(a, offset, x);
  }
}

}  // namespace jit
}  // namespace catena
