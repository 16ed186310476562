// The vectors of one instruction set, for the few loops whose registers are chosen by hand (matrix
// products). All functions are always inlined, so every level has its own copy.
#pragma once

// GCC 12 warns about the undefined vectors in its own header.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>

#define CATENA_SIMD static inline __attribute__((always_inline))

namespace catena::host {
namespace {

// kLanes elements. load_part and store_part access only the first `count` < kLanes of them; the
// others are zero. quarters<deep> loads 16 bytes from element l on, of rows 0, deep, 2 * deep, ...
// transpose turns `deep` such vectors, of rows 0, 1, ..., into columns l, l + 1, ...
template <class T>
struct Simd;

#if defined(__AVX512F__)
template <>
struct Simd<float> {
  using Vector = __m512;
  static constexpr int kLanes = 16;
  CATENA_SIMD __mmask16 mask(int64_t count) { return __mmask16((1u << count) - 1); }
  CATENA_SIMD Vector load(const float* p) { return _mm512_loadu_ps(p); }
  CATENA_SIMD Vector load_part(const float* p, int64_t count) {
    return _mm512_maskz_loadu_ps(mask(count), p);
  }
  CATENA_SIMD void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  CATENA_SIMD void store_part(float* p, Vector v, int64_t count) {
    _mm512_mask_storeu_ps(p, mask(count), v);
  }
  CATENA_SIMD Vector all(float x) { return _mm512_set1_ps(x); }
  CATENA_SIMD Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  CATENA_SIMD Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  template <int kDeep>
  CATENA_SIMD Vector quarters(const float* const* row, int64_t l) {
    Vector v = _mm512_castps128_ps512(_mm_loadu_ps(row[0] + l));
    v = _mm512_insertf32x4(v, _mm_loadu_ps(row[kDeep] + l), 1);
    v = _mm512_insertf32x4(v, _mm_loadu_ps(row[2 * kDeep] + l), 2);
    return _mm512_insertf32x4(v, _mm_loadu_ps(row[3 * kDeep] + l), 3);
  }
  CATENA_SIMD void transpose(Vector (&v)[4]) {
    const Vector a = _mm512_unpacklo_ps(v[0], v[1]), b = _mm512_unpackhi_ps(v[0], v[1]);
    const Vector c = _mm512_unpacklo_ps(v[2], v[3]), d = _mm512_unpackhi_ps(v[2], v[3]);
    v[0] = _mm512_shuffle_ps(a, c, 0x44);
    v[1] = _mm512_shuffle_ps(a, c, 0xee);
    v[2] = _mm512_shuffle_ps(b, d, 0x44);
    v[3] = _mm512_shuffle_ps(b, d, 0xee);
  }
};
template <>
struct Simd<double> {
  using Vector = __m512d;
  static constexpr int kLanes = 8;
  CATENA_SIMD __mmask8 mask(int64_t count) { return __mmask8((1u << count) - 1); }
  CATENA_SIMD Vector load(const double* p) { return _mm512_loadu_pd(p); }
  CATENA_SIMD Vector load_part(const double* p, int64_t count) {
    return _mm512_maskz_loadu_pd(mask(count), p);
  }
  CATENA_SIMD void store(double* p, Vector v) { _mm512_storeu_pd(p, v); }
  CATENA_SIMD void store_part(double* p, Vector v, int64_t count) {
    _mm512_mask_storeu_pd(p, mask(count), v);
  }
  CATENA_SIMD Vector all(double x) { return _mm512_set1_pd(x); }
  CATENA_SIMD Vector add(Vector a, Vector b) { return _mm512_add_pd(a, b); }
  CATENA_SIMD Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
  template <int kDeep>
  CATENA_SIMD Vector quarters(const double* const* row, int64_t l) {
    Vector v = _mm512_castpd128_pd512(_mm_loadu_pd(row[0] + l));
    v = _mm512_insertf64x2(v, _mm_loadu_pd(row[kDeep] + l), 1);
    v = _mm512_insertf64x2(v, _mm_loadu_pd(row[2 * kDeep] + l), 2);
    return _mm512_insertf64x2(v, _mm_loadu_pd(row[3 * kDeep] + l), 3);
  }
  CATENA_SIMD void transpose(Vector (&v)[2]) {
    const Vector a = v[0];
    v[0] = _mm512_unpacklo_pd(a, v[1]);
    v[1] = _mm512_unpackhi_pd(a, v[1]);
  }
};
#elif defined(__AVX2__) && defined(__FMA__)
template <>
struct Simd<float> {
  using Vector = __m256;
  static constexpr int kLanes = 8;
  CATENA_SIMD __m256i mask(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(int(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  CATENA_SIMD Vector load(const float* p) { return _mm256_loadu_ps(p); }
  CATENA_SIMD Vector load_part(const float* p, int64_t count) {
    return _mm256_maskload_ps(p, mask(count));
  }
  CATENA_SIMD void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  CATENA_SIMD void store_part(float* p, Vector v, int64_t count) {
    _mm256_maskstore_ps(p, mask(count), v);
  }
  CATENA_SIMD Vector all(float x) { return _mm256_set1_ps(x); }
  CATENA_SIMD Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  CATENA_SIMD Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  template <int kDeep>
  CATENA_SIMD Vector quarters(const float* const* row, int64_t l) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[0] + l)),
                                _mm_loadu_ps(row[kDeep] + l), 1);
  }
  CATENA_SIMD void transpose(Vector (&v)[4]) {
    const Vector a = _mm256_unpacklo_ps(v[0], v[1]), b = _mm256_unpackhi_ps(v[0], v[1]);
    const Vector c = _mm256_unpacklo_ps(v[2], v[3]), d = _mm256_unpackhi_ps(v[2], v[3]);
    v[0] = _mm256_shuffle_ps(a, c, 0x44);
    v[1] = _mm256_shuffle_ps(a, c, 0xee);
    v[2] = _mm256_shuffle_ps(b, d, 0x44);
    v[3] = _mm256_shuffle_ps(b, d, 0xee);
  }
};
template <>
struct Simd<double> {
  using Vector = __m256d;
  static constexpr int kLanes = 4;
  CATENA_SIMD __m256i mask(int64_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  CATENA_SIMD Vector load(const double* p) { return _mm256_loadu_pd(p); }
  CATENA_SIMD Vector load_part(const double* p, int64_t count) {
    return _mm256_maskload_pd(p, mask(count));
  }
  CATENA_SIMD void store(double* p, Vector v) { _mm256_storeu_pd(p, v); }
  CATENA_SIMD void store_part(double* p, Vector v, int64_t count) {
    _mm256_maskstore_pd(p, mask(count), v);
  }
  CATENA_SIMD Vector all(double x) { return _mm256_set1_pd(x); }
  CATENA_SIMD Vector add(Vector a, Vector b) { return _mm256_add_pd(a, b); }
  CATENA_SIMD Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
  template <int kDeep>
  CATENA_SIMD Vector quarters(const double* const* row, int64_t l) {
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(row[0] + l)),
                                _mm_loadu_pd(row[kDeep] + l), 1);
  }
  CATENA_SIMD void transpose(Vector (&v)[2]) {
    const Vector a = v[0];
    v[0] = _mm256_unpacklo_pd(a, v[1]);
    v[1] = _mm256_unpackhi_pd(a, v[1]);
  }
};
#else
// SSE2, which every x86-64 processor has. It has no fused multiply-add.
template <class T>
struct SimdOfSse {
  typedef T Vector __attribute__((vector_size(16)));
  static constexpr int kLanes = 16 / sizeof(T);
  CATENA_SIMD Vector load(const T* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  CATENA_SIMD Vector load_part(const T* p, int64_t count) {
    T lanes[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
    return load(lanes);
  }
  CATENA_SIMD void store(T* p, Vector v) { __builtin_memcpy(p, &v, sizeof v); }
  CATENA_SIMD void store_part(T* p, Vector v, int64_t count) {
    T lanes[kLanes];
    store(lanes, v);
    for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
  }
  CATENA_SIMD Vector all(T x) { return Vector{} + x; }
  CATENA_SIMD Vector add(Vector a, Vector b) { return a + b; }
  CATENA_SIMD Vector fma(Vector a, Vector b, Vector c) { return c + a * b; }
  template <int kDeep>
  CATENA_SIMD Vector quarters(const T* const* row, int64_t l) {
    return load(row[0] + l);
  }
};
template <>
struct Simd<float> : SimdOfSse<float> {
  CATENA_SIMD void transpose(Vector (&v)[4]) { _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]); }
};
template <>
struct Simd<double> : SimdOfSse<double> {
  CATENA_SIMD void transpose(Vector (&v)[2]) {
    const Vector a = v[0];
    v[0] = _mm_unpacklo_pd(a, v[1]);
    v[1] = _mm_unpackhi_pd(a, v[1]);
  }
};
#endif

}  // namespace
}  // namespace catena::host

#undef CATENA_SIMD
