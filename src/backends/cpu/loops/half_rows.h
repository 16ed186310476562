// Loops over contiguous 16-bit floats, kLanes elements at a time: converted to float, computed and
// rounded back in registers. All other cases go block by block through buffers (elementwise.cpp),
// with the same results. See loop.h about linkage.
#pragma once

#include "backends/cpu/loops/cast.h"
#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

struct HalfLanes {
  alignas(64) float x[kLanes];
};

// Half uses the processor's own conversions, or has no loops here.
template <class T>
CATENA_FN HalfLanes load_lanes(const T* from) {
  HalfLanes result;
  if (cast_by_instruction(from, result.x, kLanes) == 0)
    for (int64_t i = 0; i < kLanes; ++i) result.x[i] = widen(from[i]);
  return result;
}
// kComputed: the lanes are results of arithmetic, see round_to_brain().
template <bool kComputed, class T>
CATENA_FN void store_lanes(T* to, const HalfLanes& lanes) {
#ifdef __AVX512F__
  if constexpr (kComputed && __is_same(T, Brain)) return round_to_brain<false>(lanes.x, to);
#endif
  if (cast_by_instruction(lanes.x, to, kLanes) == 0)
    for (int64_t i = 0; i < kLanes; ++i) to[i] = Narrow<T>::from(lanes.x[i]);
}

// An input, kLanes elements at a time: contiguous, or one number (step 0).
template <class T, int kStep>
struct HalfInput {
  const T* at;
  HalfLanes number;
  explicit CATENA_FN HalfInput(const char* p) : at(reinterpret_cast<const T*>(p)) {
    if constexpr (kStep == 0) {
      for (int64_t i = 0; i < kLanes; ++i) number.x[i] = widen(*at);
      // From here on the lanes count as different: known to be equal, the compiler computes with
      // them one by one.
      asm("" : "+m"(number));
    }
  }
  CATENA_FN HalfLanes load(int64_t i) const {
    if constexpr (kStep == 0) return number;
    return load_lanes(at + i);
  }
  // The last `count` elements, with the last one repeated.
  CATENA_FN HalfLanes load_rest(int64_t i, int64_t count) const {
    if constexpr (kStep == 0) return number;
    T block[kLanes];
    load_padded(block, at + i, count);
    return load_lanes(block);
  }
};

template <class Op, class... X>
CATENA_FN HalfLanes apply_lanes(const X&... inputs) {
  HalfLanes result;
  for (int64_t i = 0; i < kLanes; ++i) result.x[i] = Op::apply(inputs.x[i]...);
  return result;
}

template <class Op, bool kComputed, class T, class... In>
CATENA_FN void run_lanes(T* out, int64_t n, const In&... inputs) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store_lanes<kComputed>(out + i, apply_lanes<Op>(inputs.load(i)...));
  if (i == n) return;
  T block[kLanes];
  store_lanes<kComputed>(block, apply_lanes<Op>(inputs.load_rest(i, n - i)...));
  store_padded(out + i, block, n - i);
}

// Takes scalars where there are two inputs.
template <class Op, int kInputs, bool kComputed, class T>
void half_loop(char* const* p, const int64_t* strides, int64_t n) {
  T* out = reinterpret_cast<T*>(p[0]);
  if constexpr (kInputs == 1) {
    run_lanes<Op, kComputed>(out, n, HalfInput<T, 1>(p[1]));
  } else if constexpr (kInputs == 3) {
    run_lanes<Op, kComputed>(out, n, HalfInput<T, 1>(p[1]), HalfInput<T, 1>(p[2]),
                             HalfInput<T, 1>(p[3]));
  } else if (strides[1] == 0 && strides[2] == 0) {
    run_lanes<Op, kComputed>(out, n, HalfInput<T, 0>(p[1]), HalfInput<T, 0>(p[2]));
  } else if (strides[1] == 0) {
    run_lanes<Op, kComputed>(out, n, HalfInput<T, 0>(p[1]), HalfInput<T, 1>(p[2]));
  } else if (strides[2] == 0) {
    run_lanes<Op, kComputed>(out, n, HalfInput<T, 1>(p[1]), HalfInput<T, 0>(p[2]));
  } else {
    run_lanes<Op, kComputed>(out, n, HalfInput<T, 1>(p[1]), HalfInput<T, 1>(p[2]));
  }
}

// The loops in a row of the table; a processor without conversions of Half has none for it.
template <class Op, int kInputs, bool kComputed, class T>
CATENA_FN void fill_half(LoopEntry (&row)[kDtypes], int dtype, bool heavy) {
  row[dtype].loop = &half_loop<Op, kInputs, kComputed, T>;
  row[dtype].takes_scalars = kInputs == 2;
  row[dtype].heavy = heavy;
}
template <class Op, int kInputs, bool kComputed>
CATENA_FN void fill_halves(LoopEntry (&row)[kDtypes], bool heavy) {
#ifdef __F16C__
  fill_half<Op, kInputs, kComputed, Half>(row, kFloat16Index, heavy);
#endif
  fill_half<Op, kInputs, kComputed, Brain>(row, kBFloat16Index, heavy);
}

}  // namespace
}  // namespace catena::host
