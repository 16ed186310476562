// Arithmetic of contiguous 16-bit floats, kLanes elements at a time: converted to float, computed
// and rounded back in registers. All other cases go block by block through buffers
// (elementwise.cpp), with the same results. See loop.h about linkage.
#define CATENA_TABLE "catena/kernels/detail/elementwise_arithmetic.def"
#include "backends/cpu/loops/cast.h"
#include "backends/cpu/loops/fill_rows.h"

namespace catena::host {
namespace {

struct Lanes {
  alignas(64) float x[kLanes];
};

// Half uses the processor's own conversions, or has no loops here.
template <class T>
CATENA_FN Lanes load_lanes(const T* from) {
  Lanes result;
  if (cast_by_instruction(from, result.x, kLanes) == 0)
    for (int64_t i = 0; i < kLanes; ++i) result.x[i] = widen(from[i]);
  return result;
}
template <class T>
CATENA_FN void store_lanes(T* to, const Lanes& lanes) {
  if (cast_by_instruction(lanes.x, to, kLanes) == 0)
    for (int64_t i = 0; i < kLanes; ++i) to[i] = Narrow<T>::from(lanes.x[i]);
}

// An input, kLanes elements at a time: contiguous, or one number (step 0).
template <class T, int kStep>
struct Input {
  const T* at;
  Lanes number;
  explicit CATENA_FN Input(const char* p) : at(reinterpret_cast<const T*>(p)) {
    if constexpr (kStep == 0) {
      for (int64_t i = 0; i < kLanes; ++i) number.x[i] = widen(*at);
      // From here on the lanes count as different: known to be equal, the compiler computes with
      // them one by one.
      asm("" : "+m"(number));
    }
  }
  CATENA_FN Lanes load(int64_t i) const {
    if constexpr (kStep == 0) return number;
    return load_lanes(at + i);
  }
  // The last `count` elements, with the last one repeated.
  CATENA_FN Lanes load_rest(int64_t i, int64_t count) const {
    if constexpr (kStep == 0) return number;
    T block[kLanes];
    load_padded(block, at + i, count);
    return load_lanes(block);
  }
};

template <class Op, class... X>
CATENA_FN Lanes apply(const X&... inputs) {
  Lanes result;
  for (int64_t i = 0; i < kLanes; ++i) result.x[i] = Op::apply(inputs.x[i]...);
  return result;
}

template <class Op, class T, class... In>
CATENA_FN void run(T* out, int64_t n, const In&... inputs) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_lanes(out + i, apply<Op>(inputs.load(i)...));
  if (i == n) return;
  T block[kLanes];
  store_lanes(block, apply<Op>(inputs.load_rest(i, n - i)...));
  store_padded(out + i, block, n - i);
}

template <class Op, int kInputs, class T>
void loop(char* const* p, const int64_t* strides, int64_t n) {
  T* out = reinterpret_cast<T*>(p[0]);
  if constexpr (kInputs == 1) {
    run<Op>(out, n, Input<T, 1>(p[1]));
  } else if constexpr (kInputs == 3) {
    run<Op>(out, n, Input<T, 1>(p[1]), Input<T, 1>(p[2]), Input<T, 1>(p[3]));
  } else if (strides[1] == 0 && strides[2] == 0) {
    run<Op>(out, n, Input<T, 0>(p[1]), Input<T, 0>(p[2]));
  } else if (strides[1] == 0) {
    run<Op>(out, n, Input<T, 0>(p[1]), Input<T, 1>(p[2]));
  } else if (strides[2] == 0) {
    run<Op>(out, n, Input<T, 1>(p[1]), Input<T, 0>(p[2]));
  } else {
    run<Op>(out, n, Input<T, 1>(p[1]), Input<T, 1>(p[2]));
  }
}

template <class T>
struct HalfRows {
  int dtype;
  template <class Op, int kInputs, OpTypes kTypes, OpForm kForm, OpCost kCost>
  void row(LoopEntry (&row)[kDtypes]) const {
    if constexpr (kComputes<kTypes, float> && kForm == OpForm::kSame && !kIsApproximated<kCost>) {
      LoopEntry& entry = row[dtype];
      entry.loop = &loop<Op, kInputs, T>;
      entry.takes_scalars = kInputs == 2;
    }
  }
};

}  // namespace

namespace CATENA_ISA {

CATENA_LOOPS(arithmetic_half) {
#ifdef __F16C__
  for_each_row(tables.loops + kFirstArithmetic, HalfRows<Half>{9});
#endif
  for_each_row(tables.loops + kFirstArithmetic, HalfRows<Brain>{10});
}

}  // namespace CATENA_ISA

}  // namespace catena::host
