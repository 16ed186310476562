// Sixteen elements at a time for the loops of pooling: values and places in vectors of the compiler
// that do not depend on the processor's width; internal linkage (see loop.h). They are only passed
// between functions that are always inlined (-Wno-psabi).
#pragma once

#include "backends/cpu/loops/convert.h"
#include "backends/cpu/loops/simd.h"

#define CATENA_FN inline __attribute__((always_inline))

namespace catena::host {
namespace {

constexpr int64_t kLanes = 16;

// What is computed in, and integers as wide: comparisons of values give such integers.
template <class C>
struct Wide;
template <>
struct Wide<float> {
  using Place = int32_t;
  typedef float Values __attribute__((vector_size(64)));
  typedef int32_t Places __attribute__((vector_size(64)));
};
template <>
struct Wide<double> {
  using Place = int64_t;
  typedef double Values __attribute__((vector_size(128)));
  typedef int64_t Places __attribute__((vector_size(128)));
};
template <class T>
using Computed = decltype(widen(T{}));
template <class T>
using Values = typename Wide<Computed<T>>::Values;
template <class T>
using Places = typename Wide<Computed<T>>::Places;

template <class T>
CATENA_FN Places<T> lane_numbers() {
  return Places<T>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}

// As they are in memory.
typedef float FloatsInMemory __attribute__((vector_size(64), aligned(4), may_alias));
typedef double DoublesInMemory __attribute__((vector_size(128), aligned(8), may_alias));
typedef uint32_t Bits __attribute__((vector_size(64)));
typedef uint32_t BitsInMemory __attribute__((vector_size(64), aligned(4), may_alias));

CATENA_FN Values<float> load(const float* x) { return *reinterpret_cast<const FloatsInMemory*>(x); }
CATENA_FN Values<double> load(const double* x) {
  return *reinterpret_cast<const DoublesInMemory*>(x);
}
#ifdef __AVX512BW__
#define CATENA_WIDE_CONVERSIONS 1
CATENA_FN Bits load_bits(const void* x) {
  return (Bits)_mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(x)));
}
CATENA_FN void store_bits(void* y, Bits bits) {
  _mm256_storeu_si256(static_cast<__m256i*>(y), _mm512_cvtepi32_epi16((__m512i)bits));
}
#else
// The compiler turns loops over arrays of constant size into few instructions.
CATENA_FN Bits load_bits(const void* x) {
  uint16_t halves[kLanes];
  uint32_t bits[kLanes];
  __builtin_memcpy(halves, x, sizeof halves);
  for (int64_t i = 0; i < kLanes; ++i) bits[i] = halves[i];
  return *reinterpret_cast<const BitsInMemory*>(bits);
}
CATENA_FN void store_bits(void* y, Bits bits) {
  uint16_t halves[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) halves[i] = uint16_t(bits[i]);
  __builtin_memcpy(y, halves, sizeof halves);
}
#endif

// As brain_to_float, half_to_float and back, of vectors.
CATENA_FN Values<Brain> load(const Brain* x) { return (Values<Brain>)(load_bits(x) << 16); }
CATENA_FN void store(Brain* y, Values<Brain> v) {
  const Bits bits = (Bits)v, rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  store_bits(y, (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}
#ifdef CATENA_WIDE_CONVERSIONS
CATENA_FN Values<Half> load(const Half* x) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}
CATENA_FN void store(Half* y, Values<Half> v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
#else
CATENA_FN Values<Half> load(const Half* x) {
  const Bits bits = load_bits(x), magnitude = bits & 0x7fffu, sign = (bits & 0x8000u) << 16;
  const Bits finite = (Bits)((Values<Half>)(magnitude << 13) * 0x1p112f);
  const Bits special = 0x7f800000u | (magnitude << 13);
  return (Values<Half>)(sign | (magnitude >= 0x7c00u ? special : finite));
}
CATENA_FN void store(Half* y, Values<Half> v) {
  const Bits bits = (Bits)v, magnitude = bits & 0x7fffffffu;
  const Bits small = (Bits)((Values<Half>)magnitude + 0.5f) - 0x3f000000u;
  const Bits normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  const Bits nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  Bits result = magnitude < 0x38800000u ? small : normal;
  result = magnitude >= 0x477ff000u ? Bits{} + 0x7c00u : result;
  result = magnitude > 0x7f800000u ? nan : result;
  store_bits(y, result | ((bits >> 16) & 0x8000u));
}
#endif
CATENA_FN void store(float* y, Values<float> v) { *reinterpret_cast<FloatsInMemory*>(y) = v; }
CATENA_FN void store(double* y, Values<double> v) { *reinterpret_cast<DoublesInMemory*>(y) = v; }

// Places as they are kept.
template <class T, class Kept>
CATENA_FN Places<T> load_places(const Kept* from) {
  using Place = typename Wide<Computed<T>>::Place;
#ifdef CATENA_WIDE_CONVERSIONS
  if constexpr (sizeof(Kept) == 1 && sizeof(Place) == 4)
    return (Places<T>)_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#endif
  Place lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = Place(from[i]);
  Places<T> v;
  __builtin_memcpy(&v, lanes, sizeof v);
  return v;
}
template <class Kept, class Vector>
CATENA_FN void store_places(Kept* to, Vector places) {
#ifdef CATENA_WIDE_CONVERSIONS
  if constexpr (sizeof(Kept) == 1 && sizeof(Vector) == 64)
    return _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8((__m512i)places));
#endif
  for (int64_t i = 0; i < kLanes; ++i) to[i] = Kept(places[i]);
}

// Whether v takes the place of the largest so far: NaN is above all, and the first one stays.
template <class C>
CATENA_FN bool is_larger(C v, C best) {
  return !(v <= best) & (best == best);
}

// The largest values of sixteen windows and where they are. Values replace the first one.
template <class T, bool kPlaces>
struct LargestOfLanes {
  Values<T> best;
  Places<T> place;

  CATENA_FN void start(Values<T> v, int64_t tap) {
    best = v;
    if constexpr (kPlaces) place = Places<T>{} + typename Wide<Computed<T>>::Place(tap);
  }
  CATENA_FN void see(Values<T> v, int64_t tap) {
    const Places<T> larger = ~(v <= best) & (best == best);
    best = larger ? v : best;
    if constexpr (kPlaces)
      place = larger ? Places<T>{} + typename Wide<Computed<T>>::Place(tap) : place;
  }
};

// The same where not every window sees the image at every place; one that has seen nothing yet has
// the place -1.
template <class T>
struct LargestOfSome {
  Values<T> best = {};
  Places<T> place = Places<T>{} - 1;

  CATENA_FN void see(Values<T> v, int64_t tap, Places<T> valid) {
    const Places<T> larger = valid & ((~(v <= best) & (best == best)) | (place < 0));
    best = larger ? v : best;
    place = larger ? Places<T>{} + typename Wide<Computed<T>>::Place(tap) : place;
  }
};

// The same of one window.
template <class T>
struct Largest {
  Computed<T> best = 0;
  int64_t place = -1;

  CATENA_FN void see(Computed<T> v, int64_t tap) {
    const bool larger = is_larger(v, best) | (place < 0);  // no branch: it could not be predicted
    best = larger ? v : best;
    place = larger ? tap : place;
  }
};

}  // namespace
}  // namespace catena::host
