// The beginning of every NVRTC kernel text: function qualifiers, elementary functions, the 16-bit
// floats and the conversions between storage types. No CUDA header is needed at run time.
#pragma once

#define CATENA_FN __device__ __forceinline__
#define CATENA_KERNEL extern "C" __global__ void

namespace catena {

// ---- elementary functions: libdevice's ---------------------------------------------------------
namespace m {
#define CATENA_M1(name)                                  \
  CATENA_FN float name(float x) { return ::name##f(x); } \
  CATENA_FN double name(double x) { return ::name(x); }
#define CATENA_M2(name)                                              \
  CATENA_FN float name(float x, float y) { return ::name##f(x, y); } \
  CATENA_FN double name(double x, double y) { return ::name(x, y); }
// clang-format off
CATENA_M1(exp) CATENA_M1(exp2) CATENA_M1(expm1) CATENA_M1(log) CATENA_M1(log2) CATENA_M1(log10) CATENA_M1(log1p)
CATENA_M1(sqrt) CATENA_M1(cbrt) CATENA_M1(sin) CATENA_M1(cos) CATENA_M1(tan) CATENA_M1(asin) CATENA_M1(acos)
CATENA_M1(atan) CATENA_M1(sinh) CATENA_M1(cosh) CATENA_M1(tanh) CATENA_M1(asinh) CATENA_M1(acosh) CATENA_M1(atanh)
CATENA_M1(erf) CATENA_M1(erfc) CATENA_M1(floor) CATENA_M1(ceil) CATENA_M1(trunc) CATENA_M1(rint) CATENA_M1(fabs)
CATENA_M2(pow) CATENA_M2(atan2) CATENA_M2(hypot) CATENA_M2(fmod) CATENA_M2(copysign)
// clang-format on
#undef CATENA_M1
#undef CATENA_M2
                            CATENA_FN bool signbit(float x) {
  return __float_as_int(x) < 0;
}
CATENA_FN bool signbit(double x) { return __double_as_longlong(x) < 0; }
// The compiler's division sends zero numerators, which relu makes many of, through a slow
// subroutine. They are replaced by 2^-64, whose quotient by any number but 0 is finite. The value
// is in a register that the compiler cannot see through, because otherwise it would divide the zero
// after all.
CATENA_FN float divide(float a, float b) {
  float numerator = a == 0 ? 5.421010862427522e-20f : a;
  asm("" : "+f"(numerator));
  const float quotient = numerator / b;
  return a == 0 ? a * quotient : quotient;
}
CATENA_FN double divide(double a, double b) {
  double numerator = a == 0 ? 5.421010862427522e-20 : a;
  asm("" : "+d"(numerator));
  const double quotient = numerator / b;
  return a == 0 ? a * quotient : quotient;
}
}  // namespace m

namespace jit {

// The first statement of every kernel: on GPUs that have it, kernels are launched before the
// previous one of the stream has ended (programmatic dependent launch, see launch_program()).
CATENA_FN void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ---- 16-bit floats: storage only, rounded to nearest even ---------------------------------------
struct Half {
  unsigned short bits;
};
struct BFloat16 {
  unsigned short bits;
};

CATENA_FN float to_float(Half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
CATENA_FN float to_float(BFloat16 x) { return __uint_as_float(unsigned(x.bits) << 16); }

template <class To>
struct Narrow;
template <>
struct Narrow<Half> {
  static CATENA_FN Half from(float x) {
    Half y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  }
  static CATENA_FN Half from(double x) {
    Half y;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y.bits) : "d"(x));
    return y;
  }
};
template <>
struct Narrow<BFloat16> {
  static CATENA_FN BFloat16 from(float x) {
    BFloat16 y;
    const unsigned u = __float_as_uint(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
      y.bits = (unsigned short)((u >> 16) | 0x40u);
    else
      y.bits = (unsigned short)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    return y;
  }
  // One rounding: the intermediate float is rounded to odd, so that the second rounding gives the
  // right result.
  static CATENA_FN BFloat16 from(double x) {
    float f = __double2float_rz(x);
    if (x == x && double(f) != x) f = __uint_as_float(__float_as_uint(f) | 1u);
    return from(f);
  }
};

template <class T>
struct Compute {
  typedef T type;
};
template <>
struct Compute<Half> {
  typedef float type;
};
template <>
struct Compute<BFloat16> {
  typedef float type;
};
template <class T>
struct IsNarrow {
  static constexpr bool value = false;
};
template <>
struct IsNarrow<Half> {
  static constexpr bool value = true;
};
template <>
struct IsNarrow<BFloat16> {
  static constexpr bool value = true;
};
template <class A, class B>
struct IsSame {
  static constexpr bool value = false;
};
template <class A>
struct IsSame<A, A> {
  static constexpr bool value = true;
};

// The value with which a kernel computes.
template <class T>
CATENA_FN typename Compute<T>::type widen(T x) {
  if constexpr (IsNarrow<T>::value)
    return to_float(x);
  else
    return x;
}

// Conversion between storage types, the same as on the host: to bool by comparison with zero, from
// integers to 16-bit floats through float, from double with one rounding.
template <class To, class From>
CATENA_FN To convert(From x) {
  if constexpr (IsSame<To, From>::value) {
    return x;
  } else if constexpr (IsNarrow<From>::value) {
    return convert<To>(to_float(x));
  } else if constexpr (IsNarrow<To>::value) {
    if constexpr (IsSame<From, double>::value)
      return Narrow<To>::from(x);
    else
      return Narrow<To>::from(float(x));
  } else if constexpr (IsSame<To, bool>::value) {
    return x != From(0);
  } else if constexpr ((IsSame<From, float>::value || IsSame<From, double>::value) &&
                       sizeof(To) < 4) {
    return To(int(x));  // out of range: the low bits, as on x86
  } else {
    return To(x);
  }
}

template <class T>
CATENA_FN T from_bits(unsigned long long bits) {
  union {
    unsigned long long u;
    T t;
  } both;
  both.u = bits;
  return both.t;
}

}  // namespace jit
}  // namespace catena
