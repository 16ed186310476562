// Helpers of the element-wise loop files. Everything has internal linkage or is always inlined:
// each file is compiled for several x86-64 levels, and the linker must not mix them.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/tables.h"

#define CATENA_FN inline __attribute__((always_inline))

// Elementary functions with vector forms in libmvec. They are declared here rather than taken from
// <cmath>, whose declarations lack the attribute and whose inline overloads are shared by the
// linker. libmvec has exp, log, sin, cos and pow since glibc 2.22 and the others since 2.35.
#include <features.h>
#if defined(__x86_64__) && defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
#define CATENA_SIMD __attribute__((simd("notinbranch")))
#define CATENA_SIMD_OLD CATENA_SIMD
#elif defined(__x86_64__) && defined(__GLIBC__)
#define CATENA_SIMD
#define CATENA_SIMD_OLD __attribute__((simd("notinbranch")))
#else
#define CATENA_SIMD
#define CATENA_SIMD_OLD
#endif

#define CATENA_DECLARE1(attribute, name)              \
  extern "C" attribute float name##f(float) noexcept; \
  extern "C" attribute double name(double) noexcept;
#define CATENA_DECLARE2(attribute, name)                     \
  extern "C" attribute float name##f(float, float) noexcept; \
  extern "C" attribute double name(double, double) noexcept;
CATENA_DECLARE1(CATENA_SIMD_OLD, exp)
CATENA_DECLARE1(CATENA_SIMD_OLD, log)
CATENA_DECLARE1(CATENA_SIMD_OLD, sin)
CATENA_DECLARE1(CATENA_SIMD_OLD, cos)
CATENA_DECLARE2(CATENA_SIMD_OLD, pow)
CATENA_DECLARE1(CATENA_SIMD, exp2)
CATENA_DECLARE1(CATENA_SIMD, expm1)
CATENA_DECLARE1(CATENA_SIMD, log2)
CATENA_DECLARE1(CATENA_SIMD, log10)
CATENA_DECLARE1(CATENA_SIMD, log1p)
CATENA_DECLARE1(CATENA_SIMD, cbrt)
CATENA_DECLARE1(CATENA_SIMD, tan)
CATENA_DECLARE1(CATENA_SIMD, asin)
CATENA_DECLARE1(CATENA_SIMD, acos)
CATENA_DECLARE1(CATENA_SIMD, atan)
CATENA_DECLARE1(CATENA_SIMD, sinh)
CATENA_DECLARE1(CATENA_SIMD, cosh)
CATENA_DECLARE1(CATENA_SIMD, tanh)
CATENA_DECLARE1(CATENA_SIMD, asinh)
CATENA_DECLARE1(CATENA_SIMD, acosh)
CATENA_DECLARE1(CATENA_SIMD, atanh)
CATENA_DECLARE1(CATENA_SIMD, erf)
CATENA_DECLARE1(CATENA_SIMD, erfc)
CATENA_DECLARE2(CATENA_SIMD, atan2)
CATENA_DECLARE2(CATENA_SIMD, hypot)
#undef CATENA_DECLARE1
#undef CATENA_DECLARE2
extern "C" float fmodf(float, float) noexcept;
extern "C" double fmod(double, double) noexcept;

namespace catena::m {
namespace {
#define CATENA_M1(name)                                  \
  CATENA_FN float name(float x) { return ::name##f(x); } \
  CATENA_FN double name(double x) { return ::name(x); }
#define CATENA_M2(name)                                              \
  CATENA_FN float name(float x, float y) { return ::name##f(x, y); } \
  CATENA_FN double name(double x, double y) { return ::name(x, y); }
#define CATENA_BUILTIN1(name)                                      \
  CATENA_FN float name(float x) { return __builtin_##name##f(x); } \
  CATENA_FN double name(double x) { return __builtin_##name(x); }
// clang-format off
CATENA_M1(exp) CATENA_M1(exp2) CATENA_M1(expm1) CATENA_M1(log) CATENA_M1(log2) CATENA_M1(log10) CATENA_M1(log1p)
CATENA_M1(cbrt) CATENA_M1(sin) CATENA_M1(cos) CATENA_M1(tan) CATENA_M1(asin) CATENA_M1(acos) CATENA_M1(atan)
CATENA_M1(sinh) CATENA_M1(cosh) CATENA_M1(tanh) CATENA_M1(asinh) CATENA_M1(acosh) CATENA_M1(atanh) CATENA_M1(erf) CATENA_M1(erfc)
CATENA_M2(pow) CATENA_M2(atan2) CATENA_M2(hypot) CATENA_M2(fmod)
CATENA_BUILTIN1(sqrt) CATENA_BUILTIN1(floor) CATENA_BUILTIN1(ceil)
CATENA_BUILTIN1(trunc) CATENA_BUILTIN1(rint) CATENA_BUILTIN1(fabs)
    // clang-format on
    CATENA_FN float copysign(float x, float y) {
  return __builtin_copysignf(x, y);
}
CATENA_FN double copysign(double x, double y) { return __builtin_copysign(x, y); }
CATENA_FN bool signbit(float x) { return __builtin_signbit(x) != 0; }
CATENA_FN bool signbit(double x) { return __builtin_signbit(x) != 0; }
CATENA_FN float divide(float x, float y) { return x / y; }
CATENA_FN double divide(double x, double y) { return x / y; }
#undef CATENA_M1
#undef CATENA_M2
#undef CATENA_BUILTIN1
}  // namespace
}  // namespace catena::m

#include "device/scalar_ops.h"

namespace catena::host {
namespace {

template <class T>
struct DtypeIndex;
#define CATENA_INDEX(type, dtype)              \
  template <>                                  \
  struct DtypeIndex<type> {                    \
    static constexpr int value = dtype##Index; \
  };
CATENA_INDEX(bool, kBool)
CATENA_INDEX(int8_t, kInt8)
CATENA_INDEX(int16_t, kInt16)
CATENA_INDEX(int32_t, kInt32)
CATENA_INDEX(int64_t, kInt64)
CATENA_INDEX(uint8_t, kUInt8)
CATENA_INDEX(uint16_t, kUInt16)
CATENA_INDEX(uint32_t, kUInt32)
CATENA_INDEX(uint64_t, kUInt64)
CATENA_INDEX(float, kFloat32)
CATENA_INDEX(double, kFloat64)
#undef CATENA_INDEX

// Whether operations of that class compute in T.
template <OpTypes kTypes, class T>
constexpr bool kComputes = (kOpKinds[int(kTypes)] & (ops::IsFloat<T>::value  ? kFloatBit
                                                     : ops::IsBool<T>::value ? kBoolBit
                                                                             : kIntBit)) != 0;
template <OpCost kCost>
constexpr bool kIsApproximated = (int(kCost) & kApproximated) != 0;

// Whether operand 0 of the functor is a condition, which the row must declare too.
template <class Op>
constexpr bool kTakesCondition = requires {
  static_cast<float (*)(bool, float, float)>(&Op::template apply<float>);
};

// The types of a row's operands when it computes in T.
template <class T, OpForm kForm>
struct OperandTypes {
  using First = T;
  using In = T;
  using Out = T;
};
template <class T>
struct OperandTypes<T, OpForm::kTest> {
  using First = T;
  using In = T;
  using Out = bool;
};
template <class T>
struct OperandTypes<T, OpForm::kChoice> {
  using First = bool;
  using In = T;
  using Out = T;
};
template <>
struct OperandTypes<bool, OpForm::kChoice> {
  using First = bool;
  using In = uint8_t;  // bytes are moved, not converted
  using Out = uint8_t;
};

// How an operand is stored. Loads of bool do not vectorise, comparisons of bytes do.
template <class T>
struct Memory {
  using Type = T;
  static CATENA_FN T value(T x) { return x; }
};
template <>
struct Memory<bool> {
  using Type = uint8_t;
  static CATENA_FN bool value(uint8_t x) { return x != 0; }
};
template <class T>
using Stored = typename Memory<T>::Type;
template <class T>
CATENA_FN const Stored<T>* stored(const T* p) {
  return reinterpret_cast<const Stored<T>*>(p);
}
template <class T>
CATENA_FN Stored<T>* stored(T* p) {
  return reinterpret_cast<Stored<T>*>(p);
}

// The loops themselves. Steps are 1 for contiguous inputs and 0 for repeated ones, and constants
// after inlining.
template <class Op, class In, class Out>
CATENA_FN void run1(Out* out, const In* a, int64_t n) {
  const Stored<In>* from = stored(a);
  Stored<Out>* to = stored(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = Stored<Out>(Op::apply(Memory<In>::value(from[i])));
}
template <class Op, class In, class Out>
CATENA_FN void run2(Out* out, const In* a, int64_t step_a, const In* b, int64_t step_b, int64_t n) {
  const Stored<In>*from_a = stored(a), *from_b = stored(b);
  Stored<Out>* to = stored(out);
  const Stored<In> a0 = *from_a, b0 = *from_b;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    to[i] = Stored<Out>(Op::apply(Memory<In>::value(step_a ? from_a[i] : a0),
                                  Memory<In>::value(step_b ? from_b[i] : b0)));
  }
}
template <class Op, class First, class In, class Out>
CATENA_FN void run3(Out* out, const First* a, const In* b, const In* c, int64_t n) {
  const Stored<First>* from_a = stored(a);
  const Stored<In>*from_b = stored(b), *from_c = stored(c);
  Stored<Out>* to = stored(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    to[i] = Stored<Out>(Op::apply(Memory<First>::value(from_a[i]), Memory<In>::value(from_b[i]),
                                  Memory<In>::value(from_c[i])));
  }
}

template <class Op, class T, OpForm kForm>
void loop1(char* const* p, const int64_t*, int64_t n) {
  using Out = typename OperandTypes<T, kForm>::Out;
  run1<Op>(reinterpret_cast<Out*>(p[0]), reinterpret_cast<const T*>(p[1]), n);
}
template <class Op, class T, OpForm kForm>
void loop2(char* const* p, const int64_t* strides, int64_t n) {
  using Out = typename OperandTypes<T, kForm>::Out;
  Out* out = reinterpret_cast<Out*>(p[0]);
  const T* a = reinterpret_cast<const T*>(p[1]);
  const T* b = reinterpret_cast<const T*>(p[2]);
  if (strides[2] == 0) {
    run2<Op>(out, a, 1, b, 0, strides[1] == 0 ? (n < 1 ? n : 1) : n);
    if (strides[1] == 0) {
      const Out value = out[0];
      for (int64_t i = 1; i < n; ++i) out[i] = value;
    }
  } else if (strides[1] == 0) {
    run2<Op>(out, a, 0, b, 1, n);
  } else {
    run2<Op>(out, a, 1, b, 1, n);
  }
}
template <class Op, class T, OpForm kForm>
void loop3(char* const* p, const int64_t*, int64_t n) {
  using Types = OperandTypes<T, kForm>;
  run3<Op>(reinterpret_cast<typename Types::Out*>(p[0]),
           reinterpret_cast<const typename Types::First*>(p[1]),
           reinterpret_cast<const typename Types::In*>(p[2]),
           reinterpret_cast<const typename Types::In*>(p[3]), n);
}

// Loops of approximated functions. Every element is computed in a vector, so a result does not
// depend on its position. The end of a row is computed in a padded block.
inline constexpr int64_t kLanes = 16;
template <class T>
CATENA_FN void load_padded(T* block, const T* source, int64_t count) {
  for (int64_t i = 0; i < kLanes; ++i) block[i] = source[i < count ? i : count - 1];
}
template <class T>
CATENA_FN void store_padded(T* destination, const T* block, int64_t count) {
  for (int64_t i = 0; i < count; ++i) destination[i] = block[i];
}

template <class Op, class T>
void padded1(char* const* p, const int64_t*, int64_t n) {
  T* out = reinterpret_cast<T*>(p[0]);
  const T* a = reinterpret_cast<const T*>(p[1]);
  const int64_t whole = n / kLanes * kLanes, rest = n - whole;
  run1<Op>(out, a, whole);
  if (rest == 0) return;
  alignas(64) T block[kLanes];
  load_padded(block, a + whole, rest);
  run1<Op>(block, block, kLanes);
  store_padded(out + whole, block, rest);
}
template <class Op, class T>
void padded2(char* const* p, const int64_t*, int64_t n) {
  T* out = reinterpret_cast<T*>(p[0]);
  const T* a = reinterpret_cast<const T*>(p[1]);
  const T* b = reinterpret_cast<const T*>(p[2]);
  const int64_t whole = n / kLanes * kLanes, rest = n - whole;
  if (whole != 0) run2<Op>(out, a, 1, b, 1, whole);
  if (rest == 0) return;
  alignas(64) T block[2][kLanes];
  load_padded(block[0], a + whole, rest);
  load_padded(block[1], b + whole, rest);
  run2<Op>(block[0], block[0], 1, block[1], 1, kLanes);
  store_padded(out + whole, block[0], rest);
}
template <class Op, class T>
void padded3(char* const* p, const int64_t*, int64_t n) {
  T* out = reinterpret_cast<T*>(p[0]);
  const T* in[3] = {reinterpret_cast<const T*>(p[1]), reinterpret_cast<const T*>(p[2]),
                    reinterpret_cast<const T*>(p[3])};
  const int64_t whole = n / kLanes * kLanes, rest = n - whole;
  run3<Op>(out, in[0], in[1], in[2], whole);
  if (rest == 0) return;
  alignas(64) T block[3][kLanes];
  for (int k = 0; k < 3; ++k) load_padded(block[k], in[k] + whole, rest);
  run3<Op>(block[0], block[0], block[1], block[2], kLanes);
  store_padded(out + whole, block[0], rest);
}

// Stores the loop for T in the row's entries if the row computes in T.
template <class Op, int kInputs, OpTypes kTypes, OpForm kForm, OpCost kCost, class T>
void fill_row(LoopEntry (&row)[kDtypes]) {
  static_assert(kTakesCondition<Op> == (kForm == OpForm::kChoice),
                "the form column is kChoice where the functor takes a bool first");
  if constexpr (kComputes<kTypes, T>) {
    LoopEntry& entry = row[DtypeIndex<T>::value];
    if constexpr (kIsApproximated<kCost> && ops::IsFloat<T>::value) {
      if constexpr (kInputs == 1)
        entry.loop = &padded1<Op, T>;
      else if constexpr (kInputs == 2)
        entry.loop = &padded2<Op, T>;
      else
        entry.loop = &padded3<Op, T>;
      entry.heavy = true;
    } else {
      if constexpr (kInputs == 1)
        entry.loop = &loop1<Op, T, kForm>;
      else if constexpr (kInputs == 2)
        entry.loop = &loop2<Op, T, kForm>;
      else
        entry.loop = &loop3<Op, T, kForm>;
      entry.takes_scalars = kInputs == 2;
    }
  }
}

}  // namespace
}  // namespace catena::host
