// Conversions between element types for the loop files; internal linkage throughout (see loop.h).
#pragma once

#include <cstdint>

namespace catena::host {
namespace {

// Storage of the 16-bit floats, with the layout of catena::float16 and catena::bfloat16.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

// Storage of bool, because loads of bool do not vectorise.
struct Truth {
  uint8_t byte;
};

inline __attribute__((always_inline)) uint32_t float_bits(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
inline __attribute__((always_inline)) float bits_float(uint32_t x) {
  return __builtin_bit_cast(float, x);
}

// Written with selections, not branches, so that loops vectorise.
inline __attribute__((always_inline)) float half_to_float(Half h) {
  const uint32_t magnitude = h.bits & 0x7fffu, sign = uint32_t(h.bits & 0x8000u) << 16;
  const uint32_t finite = float_bits(bits_float(magnitude << 13) * 0x1p112f);
  const uint32_t special = 0x7f800000u | (magnitude << 13);
  return bits_float(sign | (magnitude >= 0x7c00u ? special : finite));
}
inline __attribute__((always_inline)) Half float_to_half(float x) {
  const uint32_t u = float_bits(x), magnitude = u & 0x7fffffffu;
  // Adding 0.5 moves the last bit of a subnormal to the end of the mantissa and rounds it to even.
  const uint32_t small = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  uint32_t result = magnitude < 0x38800000u ? small : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;
  result = magnitude > 0x7f800000u ? nan : result;
  return Half{uint16_t(result | ((u >> 16) & 0x8000u))};
}
inline __attribute__((always_inline)) float brain_to_float(Brain b) {
  return bits_float(uint32_t(b.bits) << 16);
}
inline __attribute__((always_inline)) Brain float_to_brain(float x) {
  const uint32_t u = float_bits(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return Brain{uint16_t((u & 0x7fffffffu) > 0x7f800000u ? ((u >> 16) | 0x40u) : rounded)};
}
// Rounds to odd, so that a second rounding to 16 bits gives the nearest of the double.
inline __attribute__((always_inline)) float double_to_odd(double x) {
  const float nearest = float(x);
  const double back = double(nearest), magnitude = __builtin_fabs(x);
  const bool inexact = back != x && x == x;
  const uint32_t bits = float_bits(nearest);
  const uint32_t truncated = bits - (__builtin_fabs(back) > magnitude ? 1u : 0u);
  return bits_float(inexact ? (truncated | 1u) : bits);
}

// The value of an element in its compute type.
template <class T>
inline __attribute__((always_inline)) T widen(T x) {
  return x;
}
inline __attribute__((always_inline)) float widen(Half x) { return half_to_float(x); }
inline __attribute__((always_inline)) float widen(Brain x) { return brain_to_float(x); }
inline __attribute__((always_inline)) int32_t widen(Truth x) { return x.byte != 0; }

template <class T>
constexpr bool kFloating = false;
template <>
inline constexpr bool kFloating<float> = true;
template <>
inline constexpr bool kFloating<double> = true;

// Converts one value to To. Floats truncate towards zero and wrap through 32 or 64 bits; every
// nonzero value is true.
template <class To>
struct Narrow {
  template <class From>
  static inline __attribute__((always_inline)) To from(From x) {
    if constexpr (kFloating<From> && !kFloating<To>) {
      if constexpr (To(-1) > To(0) && sizeof(To) == 8)
        return x < From(0) ? To(int64_t(x)) : To(x);
      else if constexpr (sizeof(To) == 8 || (To(-1) > To(0) && sizeof(To) == 4))
        return To(int64_t(x));
      else
        return To(int32_t(x));
    } else {
      return To(x);
    }
  }
};
template <>
struct Narrow<bool> {
  template <class From>
  static inline __attribute__((always_inline)) bool from(From x) {
    return x != From(0);
  }
};
template <>
struct Narrow<Half> {
  template <class From>
  static inline __attribute__((always_inline)) Half from(From x) {
    return float_to_half(float(x));
  }
  static inline __attribute__((always_inline)) Half from(double x) {
    return float_to_half(double_to_odd(x));
  }
};
template <>
struct Narrow<Brain> {
  template <class From>
  static inline __attribute__((always_inline)) Brain from(From x) {
    return float_to_brain(float(x));
  }
  static inline __attribute__((always_inline)) Brain from(double x) {
    return float_to_brain(double_to_odd(x));
  }
};

}  // namespace
}  // namespace catena::host
