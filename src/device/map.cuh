// Element-wise kernels in three layouts: flat, rows, strided (tiled.cuh has the fourth). NVRTC
// only.
//
// The text before this file describes the operation (see backends/cuda/jit/source.cpp):
//   CATENA_N, CATENA_OUTPUTS          operands, and how many of them (the first) are outputs
//   Operand0, Operand1, ...           their storage types in memory
//   CATENA_EACH_INPUT(X), CATENA_EACH_OUTPUT(X)   X(k) for every input / output
//   CATENA_ELEMENT(V)                 computes V(outputs...) from V(inputs...)
//             further parameters of the kernels, with a leading comma
#pragma once

#include "device/args.h"
#include "device/prelude.cuh"

namespace catena {
namespace jit {

template <int kBytes>
struct Word;
template <>
struct Word<1> {
  typedef unsigned char type;
};
template <>
struct Word<2> {
  typedef unsigned short type;
};
template <>
struct Word<4> {
  typedef unsigned int type;
};
template <>
struct Word<8> {
  typedef uint2 type;
};
template <>
struct Word<16> {
  typedef uint4 type;
};

CATENA_FN constexpr int larger(int a, int b) { return a > b ? a : b; }
#define CATENA_SIZE_OF(k) largest = larger(largest, int(sizeof(Operand##k)));
CATENA_FN constexpr int largest_operand() {
  int largest = 1;
  CATENA_EACH_OUTPUT(CATENA_SIZE_OF)
  CATENA_EACH_INPUT(CATENA_SIZE_OF)
  return largest;
}
// Elements of a vector: 16 bytes of the widest operand. A thread holds kUnroll vectors at a time.
constexpr int kVector = 16 / largest_operand();
constexpr int kUnroll = kVector >= 16 ? 1 : 2;

template <class T>
union Slot {
  typename Word<int(sizeof(T)) * kVector>::type raw;
  T value[kVector];
};
template <class T>
CATENA_FN void load_vector(Slot<T>& slot, const T* p) {
  slot.raw = *reinterpret_cast<const decltype(slot.raw)*>(p);
}
template <class T>
CATENA_FN void store_vector(T* p, const Slot<T>& slot) {
  *reinterpret_cast<decltype(slot.raw)*>(p) = slot.raw;
}
template <class T>
CATENA_FN void fill_slots(Slot<T>* slots, T value) {
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
    for (int v = 0; v < kVector; ++v) slots[u].value[v] = value;
  }
}
template <class T, int N>
CATENA_FN T single_value(const MapOperands<N>& op, int k) {
  return (op.immediate >> k) & 1 ? from_bits<T>(op.value[k])
                                 : *static_cast<const T*>(op.pointer[k]);
}

#define CATENA_SLOTS(k) Slot<Operand##k> slots##k[kUnroll];
#define CATENA_SLOT(k) slots##k[u].value[v]

// ---- flat ---------------------------------------------------------------------------------------

template <class T, int N>
CATENA_FN void load_flat(Slot<T>* slots, const MapOperands<N>& op, int k, int64_t begin,
                         bool vectors, int count) {
  if (((op.immediate | op.uniform) >> k) & 1) {
    fill_slots(slots, single_value<T>(op, k));
    return;
  }
  const T* p = static_cast<const T*>(op.pointer[k]) + begin;
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (vectors) {
      load_vector(slots[u],
                  p + flat_position(true, threadIdx.x, kMapThreads, u * kVector, kVector));
      continue;
    }
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const int at = flat_position(false, threadIdx.x, kMapThreads, u * kVector + v, kVector);
      slots[u].value[v] = at < count ? p[at] : T();
    }
  }
}

template <class T>
CATENA_FN void store_flat(const Slot<T>* slots, void* pointer, int64_t begin, bool vectors,
                          int count) {
  T* p = static_cast<T*>(pointer) + begin;
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (vectors) {
      store_vector(p + flat_position(true, threadIdx.x, kMapThreads, u * kVector, kVector),
                   slots[u]);
      continue;
    }
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const int at = flat_position(false, threadIdx.x, kMapThreads, u * kVector + v, kVector);
      if (at < count) p[at] = slots[u].value[v];
    }
  }
}

CATENA_KERNEL __launch_bounds__(kMapThreads)
    catena_flat(const __grid_constant__ FlatArgs<CATENA_N> a) {
  wait_for_previous_kernel();
  constexpr int kTile = kMapThreads * kVector * kUnroll;
  int64_t begin;
  const int count = flat_tile(blockIdx.x, a.size, a.head, kTile, begin);
  const bool vectors = a.vectors && count == kTile;
  CATENA_EACH_OUTPUT(CATENA_SLOTS)
  CATENA_EACH_INPUT(CATENA_SLOTS)
#define CATENA_LOAD(k) load_flat(slots##k, a.op, k, begin, vectors, count);
  CATENA_EACH_INPUT(CATENA_LOAD)
#undef CATENA_LOAD
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      CATENA_ELEMENT(CATENA_SLOT)
    }
  }
#define CATENA_STORE(k) store_flat(slots##k, a.op.pointer[k], begin, vectors, count);
  CATENA_EACH_OUTPUT(CATENA_STORE)
#undef CATENA_STORE
}

// ---- rows ---------------------------------------------------------------------------------------

// The part of a row that a block covers: `width` threads with kVector elements each; `count`
// elements are valid.
struct RowSpan {
  bool vectors;
  int lane, width, count;
  CATENA_FN int position(int v) const { return vectors ? lane * kVector + v : v * width + lane; }
};

template <class T>
CATENA_FN void load_row(Slot<T>& slot, const char* pointer, bool splat, const RowSpan& span) {
  const T* p = reinterpret_cast<const T*>(pointer);
  if (splat) {
    const T value = *p;
#pragma unroll
    for (int v = 0; v < kVector; ++v) slot.value[v] = value;
  } else if (span.vectors) {
    if (span.lane * kVector < span.count) load_vector(slot, p + span.lane * kVector);
  } else {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      if (span.position(v) < span.count) slot.value[v] = p[span.position(v)];
    }
  }
}
// The rows that a thread processes together, `step` bytes apart.
template <class T>
CATENA_FN void load_rows(Slot<T>* slots, const char* pointer, int64_t step, bool splat,
                         const RowSpan& span, int64_t rows_left, int thread_rows) {
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (u == 0 || u * thread_rows < rows_left) load_row(slots[u], pointer + u * step, splat, span);
  }
}
template <class T>
CATENA_FN void store_row(const Slot<T>& slot, char* pointer, const RowSpan& span) {
  T* p = reinterpret_cast<T*>(pointer);
  if (span.vectors) {
    if (span.lane * kVector < span.count) store_vector(p + span.lane * kVector, slot);
  } else {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      if (span.position(v) < span.count) p[span.position(v)] = slot.value[v];
    }
  }
}

// A block takes kUnroll rows a thread of one segment, and no more. Blocks that run at the same time
// then access adjacent memory, which gains more than loading a broadcast row less often.
CATENA_KERNEL __launch_bounds__(kMapThreads)
    catena_rows(const __grid_constant__ RowsArgs<CATENA_N> a) {
  wait_for_previous_kernel();
  uint32_t segment, group;
  uint32_t outer = divide(blockIdx.x, a.segments, segment);
  outer = divide(outer, a.groups, group);
  RowSpan span;
  span.vectors = a.vectors;
  span.width = 1 << a.width_shift;
  span.lane = threadIdx.x & (span.width - 1);
  const int64_t column = int64_t(segment) * (kVector << a.width_shift);
  const int64_t columns_left = a.columns - column;
  span.count =
      columns_left < (kVector << a.width_shift) ? int(columns_left) : (kVector << a.width_shift);
  const int thread_rows = kMapThreads >> a.width_shift;
  const int64_t row = int64_t(group) * (kUnroll * thread_rows) + (threadIdx.x >> a.width_shift);
  if (row >= a.rows) return;
  const int64_t rows_left = a.rows - row;

#define CATENA_POINTER(k)                                                             \
  char* pointer##k = static_cast<char*>(a.op.pointer[k]) + row * a.row_stride[k] +    \
                     ((a.splat >> k) & 1 ? 0 : column * int64_t(sizeof(Operand##k))); \
  CATENA_SLOTS(k)
  CATENA_EACH_OUTPUT(CATENA_POINTER)
  CATENA_EACH_INPUT(CATENA_POINTER)
#undef CATENA_POINTER
#pragma unroll 1
  for (int d = 0; d < a.outer_dims; ++d) {
    uint32_t at;
    outer = divide(outer, a.outer[d], at);
#define CATENA_ADVANCE(k) pointer##k += at * a.outer_stride[d][k];
    CATENA_EACH_OUTPUT(CATENA_ADVANCE)
    CATENA_EACH_INPUT(CATENA_ADVANCE)
#undef CATENA_ADVANCE
  }
#define CATENA_LOAD(k)                                                                      \
  if ((a.op.immediate >> k) & 1)                                                            \
    fill_slots(slots##k, from_bits<Operand##k>(a.op.value[k]));                             \
  else                                                                                      \
    load_rows(slots##k, pointer##k, thread_rows* a.row_stride[k], (a.splat >> k) & 1, span, \
              rows_left, thread_rows);
  CATENA_EACH_INPUT(CATENA_LOAD)
#undef CATENA_LOAD
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      CATENA_ELEMENT(CATENA_SLOT)
    }
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (u * thread_rows < rows_left) {
#define CATENA_STORE(k) \
  store_row(slots##k[u], pointer##k + u * thread_rows * a.row_stride[k], span);
      CATENA_EACH_OUTPUT(CATENA_STORE)
#undef CATENA_STORE
    }
  }
}

// ---- strided ------------------------------------------------------------------------------------

CATENA_KERNEL __launch_bounds__(kMapThreads)
    catena_strided(const __grid_constant__ StridedArgs<CATENA_N> a) {
  wait_for_previous_kernel();
  const int64_t stop = a.size;
#pragma unroll 1
  for (int64_t first = int64_t(blockIdx.x) * kMapThreads * kStridedUnroll + threadIdx.x;
       first < stop; first += int64_t(gridDim.x) * kMapThreads * kStridedUnroll) {
#define CATENA_ELEMENTS(k)           \
  int64_t offset##k[kStridedUnroll]; \
  Operand##k value##k[kStridedUnroll];
    CATENA_EACH_OUTPUT(CATENA_ELEMENTS)
    CATENA_EACH_INPUT(CATENA_ELEMENTS)
#undef CATENA_ELEMENTS
#pragma unroll
    for (int u = 0; u < kStridedUnroll; ++u) {
      uint32_t rest = uint32_t(first + u * kMapThreads);
      if (first + u * kMapThreads >= stop) break;
#define CATENA_OFFSET(k) offset##k[u] = 0;
      CATENA_EACH_OUTPUT(CATENA_OFFSET)
      CATENA_EACH_INPUT(CATENA_OFFSET)
#undef CATENA_OFFSET
#pragma unroll 1
      for (int d = 0; d < a.ndim; ++d) {
        uint32_t position;
        rest = divide(rest, a.extent[d], position);
#define CATENA_ADVANCE(k) offset##k[u] += position * a.stride[d][k];
        CATENA_EACH_OUTPUT(CATENA_ADVANCE)
        CATENA_EACH_INPUT(CATENA_ADVANCE)
#undef CATENA_ADVANCE
      }
#define CATENA_LOAD(k)                                      \
  value##k[u] = (a.op.immediate >> k) & 1                   \
                    ? from_bits<Operand##k>(a.op.value[k])  \
                    : *reinterpret_cast<const Operand##k*>( \
                          static_cast<const char*>(a.op.pointer[k]) + offset##k[u]);
      CATENA_EACH_INPUT(CATENA_LOAD)
#undef CATENA_LOAD
    }
#pragma unroll
    for (int u = 0; u < kStridedUnroll; ++u) {
      if (first + u * kMapThreads >= stop) break;
#define CATENA_VALUE(k) value##k[u]
      CATENA_ELEMENT(CATENA_VALUE)
#undef CATENA_VALUE
#define CATENA_STORE(k) \
  *reinterpret_cast<Operand##k*>(static_cast<char*>(a.op.pointer[k]) + offset##k[u]) = value##k[u];
      CATENA_EACH_OUTPUT(CATENA_STORE)
#undef CATENA_STORE
    }
  }
}

}  // namespace jit
}  // namespace catena
