// Numbers of 16 bits as vectors of float of the processor's width; internal linkage (see loop.h).
#pragma once

#include "backends/cpu/loops/convert.h"
#include "backends/cpu/loops/simd.h"

#define CATENA_FN inline __attribute__((always_inline))

namespace catena::host {
namespace {

using Floats = Simd<float>::Vector;
constexpr int64_t kLanes = Simd<float>::kLanes;
// Bit patterns as wide.
typedef uint32_t FloatBits __attribute__((vector_size(kLanes * 4)));

CATENA_FN Floats load(const float* x) { return Simd<float>::load(x); }

#if defined(__AVX512F__)
CATENA_FN FloatBits load_bits(const void* x) {
  return (FloatBits)_mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(x)));
}
CATENA_FN void store_bits(void* y, FloatBits bits) {
  _mm256_storeu_si256(static_cast<__m256i*>(y), _mm512_cvtepi32_epi16((__m512i)bits));
}
CATENA_FN Floats load(const Half* x) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}
CATENA_FN void store(Half* y, Floats v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
CATENA_FN FloatBits load_bits(const void* x) {
  return (FloatBits)_mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(x)));
}
CATENA_FN void store_bits(void* y, FloatBits bits) {
  const __m256i wide = (__m256i)bits;
  _mm_storeu_si128(static_cast<__m128i*>(y), _mm_packus_epi32(_mm256_castsi256_si128(wide),
                                                              _mm256_extracti128_si256(wide, 1)));
}
CATENA_FN Floats load(const Half* x) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}
CATENA_FN void store(Half* y, Floats v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
#else
CATENA_FN FloatBits load_bits(const void* x) {
  return (FloatBits)_mm_cvtepu16_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(x)));
}
CATENA_FN void store_bits(void* y, FloatBits bits) {
  const __m128i wide = (__m128i)bits;
  _mm_storel_epi64(static_cast<__m128i*>(y), _mm_packus_epi32(wide, wide));
}
// As half_to_float and float_to_half.
CATENA_FN Floats load(const Half* x) {
  const FloatBits bits = load_bits(x), magnitude = bits & 0x7fffu, sign = (bits & 0x8000u) << 16;
  const FloatBits finite = (FloatBits)((Floats)(magnitude << 13) * 0x1p112f);
  const FloatBits special = 0x7f800000u | (magnitude << 13);
  return (Floats)(sign | (magnitude >= 0x7c00u ? special : finite));
}
CATENA_FN void store(Half* y, Floats v) {
  const FloatBits bits = (FloatBits)v, magnitude = bits & 0x7fffffffu;
  const FloatBits small = (FloatBits)((Floats)magnitude + 0.5f) - 0x3f000000u;
  const FloatBits normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  const FloatBits nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  FloatBits result = magnitude < 0x38800000u ? small : normal;
  result = magnitude >= 0x477ff000u ? FloatBits{} + 0x7c00u : result;
  result = magnitude > 0x7f800000u ? nan : result;
  store_bits(y, result | ((bits >> 16) & 0x8000u));
}
#endif

// As brain_to_float and float_to_brain.
CATENA_FN Floats load(const Brain* x) { return (Floats)(load_bits(x) << 16); }
CATENA_FN void store(Brain* y, Floats v) {
  const FloatBits bits = (FloatBits)v;
  const FloatBits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  store_bits(y, (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

}  // namespace
}  // namespace catena::host
