// Inner loops of argmax and argmin. See loop.h about linkage.
#include "backends/cpu/loops/extreme.h"
#include "backends/cpu/loops/tables.h"

namespace catena::host {
namespace {

constexpr int64_t kArgBlock = 2048;  // elements whose extreme is found before its position

// As wide as the element, so that the results of comparisons need no packing.
template <int kBytes>
struct FlagOf;
template <>
struct FlagOf<1> {
  using Type = uint8_t;
};
template <>
struct FlagOf<2> {
  using Type = uint16_t;
};
template <>
struct FlagOf<4> {
  using Type = uint32_t;
};
template <>
struct FlagOf<8> {
  using Type = uint64_t;
};

// Whether one of the first kCount elements equals `value`.
template <int64_t kCount, class T>
inline __attribute__((always_inline)) bool contains(const T* x, T value) {
  using Flag = typename FlagOf<sizeof(T)>::Type;
  Flag found = 0;
  for (int64_t k = 0; k < kCount; ++k) found |= Flag(x[k] == value ? 1 : 0);
  return found != 0;
}

// The position of the first element that equals `value` (or is NaN if `value` is), or n. Testing
// whether any comparison of a vector held takes longer than the comparison, so long stretches are
// tested first.
template <class T>
int64_t find(const T* x, int64_t n, T value) {
  using Flag = typename FlagOf<sizeof(T)>::Type;
  constexpr int64_t kStep = 128 / sizeof(T), kStretch = 4 * kStep;
  int64_t i = 0;
  if (value == value) {
    while (i + kStretch <= n && !contains<kStretch>(x + i, value)) i += kStretch;
    while (i + kStep <= n && !contains<kStep>(x + i, value)) i += kStep;
    if (i + kStep <= n) {
      Flag first = Flag(kStep);
      for (int64_t k = 0; k < kStep; ++k) {
        const Flag place = x[i + k] == value ? Flag(k) : Flag(kStep);
        first = place < first ? place : first;
      }
      return i + int64_t(first);
    }
  }
  for (; i < n; ++i) {
    if (x[i] == value || (x[i] != x[i] && value != value)) return i;
  }
  return n;
}

template <class Op, class T>
int64_t arg_row(const char* source, int64_t n) {
  const T* x = reinterpret_cast<const T*>(source);
  T best = x[0];
  int64_t block = 0;
  for (int64_t at = 0; at < n; at += kArgBlock) {
    const T candidate = extreme<Op>(x + at, n - at < kArgBlock ? n - at : kArgBlock);
    if (candidate == best || Op::step(best, candidate) == best) continue;
    best = candidate;
    block = at;
    if (best != best) break;
  }
  return block + find(x + block, n - block, best);
}
// For bytes of 0 or 1: the position of the first 1 (maximum) or 0 (minimum).
template <bool kMaximum>
int64_t arg_truth(const char* source, int64_t n) {
  const int64_t at = find(reinterpret_cast<const uint8_t*>(source), n, uint8_t(kMaximum));
  return at < n ? at : 0;
}

template <class Op, class T>
void arg_columns(const char* row, int64_t n, int32_t position, char* best, int32_t* positions) {
  const T* x = reinterpret_cast<const T*>(row);
  T* top = reinterpret_cast<T*>(best);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const T value = x[j], old = top[j];
    const T chosen = Op::step(old, value);
    const bool beaten = (chosen != old) & (old == old);  // not by an equal element, nor NaN by NaN
    top[j] = beaten ? value : old;
    positions[j] = beaten ? position : positions[j];
  }
}

template <class T>
void fill_type(Tables& tables, int dtype) {
  tables.arg_extremes[0][dtype] = {&arg_row<MinOp, T>, &arg_columns<MinOp, T>};
  tables.arg_extremes[1][dtype] = {&arg_row<MaxOp, T>, &arg_columns<MaxOp, T>};
}

}  // namespace

namespace CATENA_ISA {

CATENA_LOOPS(arg_reduce) {
  fill_type<uint8_t>(tables, kBoolIndex);
  tables.arg_extremes[0][kBoolIndex].row = &arg_truth<false>;
  tables.arg_extremes[1][kBoolIndex].row = &arg_truth<true>;
  fill_type<int8_t>(tables, kInt8Index);
  fill_type<int16_t>(tables, kInt16Index);
  fill_type<int32_t>(tables, kInt32Index);
  fill_type<int64_t>(tables, kInt64Index);
  fill_type<uint8_t>(tables, kUInt8Index);
  fill_type<uint16_t>(tables, kUInt16Index);
  fill_type<uint32_t>(tables, kUInt32Index);
  fill_type<uint64_t>(tables, kUInt64Index);
  fill_type<float>(tables, kFloat32Index);
  fill_type<double>(tables, kFloat64Index);
}

}  // namespace CATENA_ISA

}  // namespace catena::host
