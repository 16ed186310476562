// 16-bit floating-point storage types of the host: IEEE half (float16) and bfloat16.
//
// They are storage only: arithmetic converts to float. Conversions from float round to nearest
// even, as the GPU's and NumPy's do; overflow gives infinity, NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace catena {

// IEEE half precision: 1 sign, 5 exponent and 10 fraction bits.
struct float16 {
  uint16_t bits = 0;

  float16() = default;
  explicit float16(float value) : bits(from_float(value)) {}
  // Rounds once, from double, not through float.
  explicit float16(double value) : bits(from_double(value)) {}
  explicit operator float() const { return to_float(bits); }
  friend bool operator==(float16 a, float16 b) { return float(a) == float(b); }

  // The bits of a number, rounded once to nearest even, and the number of bits.
  static uint16_t from_float(float value);
  static uint16_t from_double(double value);
  static float to_float(uint16_t bits);
};

// bfloat16: the upper half of a float.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  // Rounds once to nearest even; the conversion back is exact.
  explicit bfloat16(float value) : bits(from_float(value)) {}
  explicit bfloat16(double value) : bits(from_double(value)) {}
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
  friend bool operator==(bfloat16 a, bfloat16 b) { return float(a) == float(b); }

  // The bits of a number, rounded once to nearest even.
  static uint16_t from_float(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);  // NaN
    return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  // From double without rounding to float first.
  static uint16_t from_double(double value);
};

}  // namespace catena
