#include "catena/core/half.h"

#include <cmath>

namespace catena {
namespace {

// Rounds a double to `keep` significant bits below which the target has nothing, by round-to-odd to
// float: the following float -> 16-bit rounding then gives the correctly rounded result.
float round_to_odd(double value) {
  float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value || std::isinf(nearest))
    return nearest;
  uint32_t u = std::bit_cast<uint32_t>(nearest);
  const bool too_far = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  if (too_far) u -= 1;  // truncate towards zero
  return std::bit_cast<float>(u | 1u);
}

}  // namespace

uint16_t float16::from_float(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {  // subnormal or zero: let the float adder round
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

uint16_t float16::from_double(double value) { return from_float(round_to_odd(value)); }

float float16::to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t bfloat16::from_double(double value) { return from_float(round_to_odd(value)); }

}  // namespace catena
