// Cast loops from one element type to all others; see loop.h about linkage.
#pragma once

#if defined(__F16C__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include "backends/cpu/loops/convert.h"
#include "backends/cpu/loops/tables.h"

namespace catena::host {
namespace {

// Returns how many leading elements of a contiguous row the processor's own conversions have done.
template <class From, class To>
inline __attribute__((always_inline)) int64_t cast_by_instruction(const From*, To*, int64_t) {
  return 0;
}
#ifdef __F16C__
inline __attribute__((always_inline)) int64_t cast_by_instruction(const Half* from, float* to,
                                                                  int64_t n) {
  int64_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_ps(to + i, _mm512_maskz_cvtph_ps(__mmask16(0xffff), half));
  }
#endif
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
  return i;
}
inline __attribute__((always_inline)) int64_t cast_by_instruction(const float* from, Half* to,
                                                                  int64_t n) {
  constexpr int kToNearestEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  int64_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16) {  // all lanes masked in: GCC 12 warns of the plain form
    const __m256i half =
        _mm512_maskz_cvtps_ph(__mmask16(0xffff), _mm512_loadu_ps(from + i), kToNearestEven);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), half);
  }
#endif
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), kToNearestEven);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
  }
  return i;
}
#endif

// brain_to_float() and float_to_brain() of whole vectors. In blocks of few elements the compiler
// unrolls these, which takes it long and gives slow code.
#ifdef __AVX2__
inline __attribute__((always_inline)) int64_t cast_by_instruction(const Brain* from, float* to,
                                                                  int64_t n) {
  int64_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16) {
    const __m256i brain = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(__mmask16(0xffff), brain);
    _mm512_storeu_si512(to + i, _mm512_maskz_slli_epi32(__mmask16(0xffff), wide, 16));
  }
#endif
  for (; i + 8 <= n; i += 8) {
    const __m128i brain = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_slli_epi32(_mm256_cvtepu16_epi32(brain), 16));
  }
  return i;
}
#ifdef __AVX512F__
// Of 16 floats. kAnyNaN false: a NaN among them is quiet, and its last 16 bits are 0, so that
// rounding leaves it as it is. The results of arithmetic with 16-bit floats are such.
template <bool kAnyNaN>
inline __attribute__((always_inline)) void round_to_brain(const float* from, Brain* to) {
  // 0x7fff is added, and 1 more where the last bit that stays is odd. Of each sum the upper half
  // stays.
  const __m512 x = _mm512_loadu_ps(from);
  const __m512i u = _mm512_castps_si512(x);
  const __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
  __m512i sum = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
  sum = _mm512_mask_add_epi32(sum, odd, sum, _mm512_set1_epi32(1));
  if constexpr (kAnyNaN) {
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    sum = _mm512_mask_or_epi32(sum, nan, u, _mm512_set1_epi32(0x400000));
  }
  const __m512i upper = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1,
                                         31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  const __m512i halves = _mm512_maskz_permutexvar_epi16(__mmask32(-1), upper, sum);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      __builtin_shufflevector(halves, halves, 0, 1, 2, 3));
}
#endif
inline __attribute__((always_inline)) int64_t cast_by_instruction(const float* from, Brain* to,
                                                                  int64_t n) {
  int64_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16) round_to_brain<true>(from + i, to + i);
#endif
  for (; i + 8 <= n; i += 8) {
    const __m256i u = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m256i high = _mm256_srli_epi32(u, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i nan = _mm256_cmpgt_epi32(_mm256_and_si256(u, _mm256_set1_epi32(0x7fffffff)),
                                           _mm256_set1_epi32(0x7f800000));
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i rounded = _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), quiet, nan);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(to + i),
        _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1)));
  }
  return i;
}
#endif

template <class From, class To>
void cast_loop(const char* source, int64_t source_stride, char* destination,
               int64_t destination_stride, int64_t n) {
  if (source_stride == sizeof(From) && destination_stride == sizeof(To)) {
    const From* from = reinterpret_cast<const From*>(source);
    To* to = reinterpret_cast<To*>(destination);
    const int64_t done = cast_by_instruction(from, to, n);
#pragma GCC ivdep
    for (int64_t i = done; i < n; ++i) to[i] = Narrow<To>::from(widen(from[i]));
  } else if (source_stride == 0 && destination_stride == sizeof(To)) {
    const To value = Narrow<To>::from(widen(*reinterpret_cast<const From*>(source)));
    To* to = reinterpret_cast<To*>(destination);
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const From value = *reinterpret_cast<const From*>(source + i * source_stride);
      *reinterpret_cast<To*>(destination + i * destination_stride) = Narrow<To>::from(widen(value));
    }
  }
}

// The loops that cast from From. Those to itself come from use_moves() in runtime/isa.cpp.
template <class From>
void fill_casts_from(Tables& tables, int from) {
  CastLoop* row = tables.casts[from];
  row[kBoolIndex] = &cast_loop<From, bool>;
  row[kInt8Index] = &cast_loop<From, int8_t>;
  row[kInt16Index] = &cast_loop<From, int16_t>;
  row[kInt32Index] = &cast_loop<From, int32_t>;
  row[kInt64Index] = &cast_loop<From, int64_t>;
  row[kUInt8Index] = &cast_loop<From, uint8_t>;
  row[kUInt16Index] = &cast_loop<From, uint16_t>;
  row[kUInt32Index] = &cast_loop<From, uint32_t>;
  row[kUInt64Index] = &cast_loop<From, uint64_t>;
  row[kFloat16Index] = &cast_loop<From, Half>;
  row[kBFloat16Index] = &cast_loop<From, Brain>;
  row[kFloat32Index] = &cast_loop<From, float>;
  row[kFloat64Index] = &cast_loop<From, double>;
}

}  // namespace
}  // namespace catena::host
