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

// n elements; distances are in elements, not bytes. Four at a time, because the compiler does not
// unroll, and one element an iteration leaves half of the loads unused. Inlined with constant
// distances, the loop becomes vector shuffles.
template <class T>
inline __attribute__((always_inline)) void move_strided(const T* from, int64_t from_step, T* to,
                                                        int64_t to_step, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
}
template <class T>
inline __attribute__((always_inline)) void move_bytes_apart(const char* from, int64_t from_stride,
                                                            char* to, int64_t to_stride,
                                                            int64_t n) {
  const auto read = [&](int64_t k) { return *reinterpret_cast<const T*>(from + k * from_stride); };
  const auto write = [&](int64_t k, T value) { *reinterpret_cast<T*>(to + k * to_stride) = value; };
  for (; n >= 4; n -= 4, from += 4 * from_stride, to += 4 * to_stride) {
    const T a = read(0), b = read(1), c = read(2), d = read(3);
    write(0, a);
    write(1, b);
    write(2, c);
    write(3, d);
  }
  for (int64_t i = 0; i < n; ++i) write(i, read(i));
}

// Equal types: copies the bits.
template <class T>
void same_loop(const char* source, int64_t source_stride, char* destination,
               int64_t destination_stride, int64_t n) {
  if (source_stride == sizeof(T) && destination_stride == sizeof(T)) {
    __builtin_memmove(destination, source, uint64_t(n) * sizeof(T));
  } else if (source_stride == 0 && destination_stride == sizeof(T)) {
    const T value = *reinterpret_cast<const T*>(source);
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(destination)[i] = value;
  } else if (destination_stride == sizeof(T) && source_stride == 2 * int64_t(sizeof(T))) {
    move_strided(reinterpret_cast<const T*>(source), 2, reinterpret_cast<T*>(destination), 1, n);
  } else if (destination_stride == sizeof(T) && source_stride == -int64_t(sizeof(T))) {
    move_strided(reinterpret_cast<const T*>(source), -1, reinterpret_cast<T*>(destination), 1, n);
  } else {
    move_bytes_apart<T>(source, source_stride, destination, destination_stride, n);
  }
}

// The 13 loops that cast from From, in the order of catena::Dtype.
template <class From>
void fill_casts_from(Tables& tables, int from) {
  CastLoop* row = tables.casts[from];
  row[0] = &cast_loop<From, bool>;
  row[1] = &cast_loop<From, int8_t>;
  row[2] = &cast_loop<From, int16_t>;
  row[3] = &cast_loop<From, int32_t>;
  row[4] = &cast_loop<From, int64_t>;
  row[5] = &cast_loop<From, uint8_t>;
  row[6] = &cast_loop<From, uint16_t>;
  row[7] = &cast_loop<From, uint32_t>;
  row[8] = &cast_loop<From, uint64_t>;
  row[9] = &cast_loop<From, Half>;
  row[10] = &cast_loop<From, Brain>;
  row[11] = &cast_loop<From, float>;
  row[12] = &cast_loop<From, double>;
  constexpr int size = sizeof(From);
  row[from] = size == 1   ? &same_loop<uint8_t>
              : size == 2 ? &same_loop<uint16_t>
              : size == 4 ? &same_loop<uint32_t>
                          : &same_loop<uint64_t>;
}

}  // namespace
}  // namespace catena::host
