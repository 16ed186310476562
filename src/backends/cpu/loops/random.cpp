// Random numbers and dropout masks from Philox blocks. Blocks are drawn in groups, so that all
// loops vectorise. See loop.h about linkage and about libmvec.
#include <immintrin.h>

#include "backends/cpu/loops/loop.h"
#include "device/philox.h"

namespace catena::host {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

// Blocks that are drawn together. More than GCC unrolls, because it would make scalar code of
// unrolled loops.
constexpr int64_t kGroup = 32;

// Vectors of 64-bit lanes, and the product of their low halves. GCC would choose the slow product
// of whole lanes if there is one.
#if defined(__AVX512F__)
using Lanes = uint64_t __attribute__((vector_size(64)));
inline __attribute__((always_inline)) Lanes product(Lanes a, Lanes b) {
  return (Lanes)_mm512_maskz_mul_epu32(__mmask8(-1), (__m512i)a, (__m512i)b);
}
#define CATENA_LOW_LANES(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define CATENA_HIGH_LANES(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif defined(__AVX2__)
using Lanes = uint64_t __attribute__((vector_size(32)));
inline __attribute__((always_inline)) Lanes product(Lanes a, Lanes b) {
  return (Lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
#define CATENA_LOW_LANES(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define CATENA_HIGH_LANES(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#else
using Lanes = uint64_t __attribute__((vector_size(16)));
inline __attribute__((always_inline)) Lanes product(Lanes a, Lanes b) {
  return (Lanes)_mm_mul_epu32((__m128i)a, (__m128i)b);
}
#define CATENA_LOW_LANES(a, b) __builtin_shufflevector(a, b, 0, 2)
#define CATENA_HIGH_LANES(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif
constexpr int64_t kLaneCount = sizeof(Lanes) / sizeof(uint64_t);
static_assert(kGroup % kLaneCount == 0);

// Both halves of kGroup blocks, in order: philox::block with one block a lane. A word is the low
// half of its lane; the high half does not reach the results.
inline __attribute__((always_inline)) void draw(uint64_t seed, uint64_t first,
                                                uint64_t (&bits)[2 * kGroup]) {
  constexpr uint64_t kLow = 0xffffffff;
  Lanes index;
  for (int64_t i = 0; i < kLaneCount; ++i) index[i] = first + uint64_t(i);
  for (int64_t at = 0; at < kGroup; at += kLaneCount, index += uint64_t(kLaneCount)) {
    Lanes c0 = index, c1 = index >> 32, c2 = index ^ index, c3 = c2;
    uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const Lanes p0 = product(c0, c2 * 0 + 0xD2511F53ull);
      const Lanes p1 = product(c2, c2 * 0 + 0xCD9E8D57ull);
      c0 = (p1 >> 32) ^ c1 ^ uint64_t(k0);
      c2 = (p0 >> 32) ^ c3 ^ uint64_t(k1);
      c1 = p1;
      c3 = p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const Lanes half0 = (c0 & kLow) | (c1 << 32), half1 = (c2 & kLow) | (c3 << 32);
    const Lanes low = CATENA_LOW_LANES(half0, half1), high = CATENA_HIGH_LANES(half0, half1);
    __builtin_memcpy(bits + 2 * at, &low, sizeof low);
    __builtin_memcpy(bits + 2 * at + kLaneCount, &high, sizeof high);
  }
}

// philox::unit53 in a form that vectorises without 64-bit conversions: the number is below 2^53,
// and its two parts are exact as mantissas beside 2^52 and 2^84.
inline __attribute__((always_inline)) double unit53(uint64_t bits) {
  const uint64_t value = bits >> 11;
#if defined(__AVX512DQ__)
  return double(int64_t(value)) * 0x1p-53;
#else
  const uint64_t low = (value & 0xffffffff) | 0x4330000000000000ull,
                 high = (value >> 32) | 0x4530000000000000ull;
  double a, b;
  __builtin_memcpy(&a, &low, sizeof a);
  __builtin_memcpy(&b, &high, sizeof b);
  return ((b - (0x1p84 + 0x1p52)) + a) * 0x1p-53;
#endif
}
inline __attribute__((always_inline)) float unit24(uint32_t word) {
  return float(int32_t(word >> 8)) * 0x1p-24f;
}

// Calls f(bits, values) for each group; f stores `per` elements a block in values. The n elements
// begin with a block's first element.
template <int per, class T, class F>
inline __attribute__((always_inline)) void generate(uint64_t seed, uint64_t first, T* out,
                                                    int64_t n, F f) {
  constexpr int64_t kElements = per * kGroup;
  for (int64_t at = 0; at < n; at += kElements, first += kGroup) {
    alignas(64) uint64_t bits[2 * kGroup];
    draw(seed, first, bits);
    if (at + kElements <= n) {
      f(bits, out + at);
    } else {
      alignas(64) T values[kElements];
      f(bits, values);
      for (int64_t i = 0; i < n - at; ++i) out[at + i] = values[i];
    }
  }
}

void bits(uint64_t seed, uint64_t first, uint64_t* out, int64_t n) {
  generate<1>(seed, first, out, n, [](const uint64_t* b, uint64_t* v) {
    for (int64_t i = 0; i < kGroup; ++i) v[i] = b[2 * i];
  });
}

void halves(uint64_t seed, uint64_t first, uint64_t* out, int64_t n) {
  generate<2>(seed, first, out, n, [](const uint64_t* b, uint64_t* v) {
    for (int64_t i = 0; i < 2 * kGroup; ++i) v[i] = b[i];
  });
}

void uniform_float(uint64_t seed, uint64_t first, float low, float high, float* out, int64_t n) {
  const float range = high - low;
  generate<4>(seed, first, out, n, [=](const uint64_t* b, float* v) {
    uint32_t words[4 * kGroup];
    __builtin_memcpy(words, b, sizeof words);
    for (int64_t i = 0; i < 4 * kGroup; ++i) v[i] = low + range * unit24(words[i]);
  });
}
void uniform_double(uint64_t seed, uint64_t first, double low, double high, double* out,
                    int64_t n) {
  const double range = high - low;
  generate<2>(seed, first, out, n, [=](const uint64_t* b, double* v) {
    for (int64_t i = 0; i < 2 * kGroup; ++i) v[i] = low + range * unit53(b[i]);
  });
}

// The cosine and sine of 2 pi u, in separate loops: GCC merges a cosine and a sine of one number
// into a scalar sincos, and then no loop vectorises. In float by quadrants, whose angles are exact
// before the multiplication by pi, as in sincospif on GPUs. Near the zeros no other form is
// precise.
template <int64_t pairs>
inline __attribute__((always_inline)) void cos_sin(const float (&u)[pairs], float* cosine,
                                                   float* sine) {
  alignas(64) float angle[pairs], c[pairs], s[pairs];
  alignas(64) int32_t quadrant[pairs];
  for (int64_t i = 0; i < pairs; ++i) {
    const float nearest = m::rint(4 * u[i]);
    quadrant[i] = static_cast<int32_t>(nearest);
    angle[i] = float(kTwoPi) * (u[i] - 0.25f * nearest);
  }
  for (int64_t i = 0; i < pairs; ++i) c[i] = m::cos(angle[i]);
  for (int64_t i = 0; i < pairs; ++i) s[i] = m::sin(angle[i]);
  for (int64_t i = 0; i < pairs; ++i) {
    const bool odd = quadrant[i] & 1;
    const float x = odd ? s[i] : c[i], y = odd ? c[i] : s[i];
    cosine[i] = (quadrant[i] + 1) & 2 ? -x : x;
    sine[i] = quadrant[i] & 2 ? -y : y;
  }
}
template <int64_t pairs>
inline __attribute__((always_inline)) void cos_sin(const double (&u)[pairs], double* cosine,
                                                   double* sine) {
  alignas(64) double angle[pairs];
  for (int64_t i = 0; i < pairs; ++i) angle[i] = kTwoPi * u[i];
  for (int64_t i = 0; i < pairs; ++i) cosine[i] = m::cos(angle[i]);
  for (int64_t i = 0; i < pairs; ++i) sine[i] = m::sin(angle[i]);
}

// Pairs: mean + deviation * r * (cos, sin).
template <int64_t pairs, class T>
inline __attribute__((always_inline)) void box_muller(const T (&u1)[pairs], const T (&u2)[pairs],
                                                      T mean, T deviation, T* out) {
  alignas(64) T radius[pairs], first[pairs], second[pairs];
  cos_sin(u2, first, second);
  for (int64_t i = 0; i < pairs; ++i) radius[i] = m::sqrt(T(-2) * m::log(u1[i]));
  for (int64_t i = 0; i < pairs; ++i) first[i] = mean + deviation * (radius[i] * first[i]);
  for (int64_t i = 0; i < pairs; ++i) second[i] = mean + deviation * (radius[i] * second[i]);
  for (int64_t i = 0; i < pairs; ++i) {
    out[2 * i] = first[i];
    out[2 * i + 1] = second[i];
  }
}

void normal_float(uint64_t seed, uint64_t first, float mean, float deviation, float* out,
                  int64_t n) {
  generate<4>(seed, first, out, n, [=](const uint64_t* b, float* v) {
    alignas(64) float u1[2 * kGroup], u2[2 * kGroup];
    for (int64_t i = 0; i < 2 * kGroup; ++i) {
      u1[i] = 1.0f - unit24(uint32_t(b[i]));
      u2[i] = unit24(uint32_t(b[i] >> 32));
    }
    box_muller(u1, u2, mean, deviation, v);
  });
}
void normal_double(uint64_t seed, uint64_t first, double mean, double deviation, double* out,
                   int64_t n) {
  generate<2>(seed, first, out, n, [=](const uint64_t* b, double* v) {
    alignas(64) double u1[kGroup], u2[kGroup];
    for (int64_t i = 0; i < kGroup; ++i) {
      u1[i] = 1.0 - unit53(b[2 * i]);
      u2[i] = unit53(b[2 * i + 1]);
    }
    box_muller(u1, u2, mean, deviation, v);
  });
}

template <class T>
void dropout(uint64_t seed, uint64_t first, float ratio, T scale, const T* x, T* y, int64_t n) {
  constexpr int64_t kElements = 4 * kGroup;
  for (int64_t at = 0; at < n; at += kElements, first += kGroup) {
    alignas(64) uint64_t b[2 * kGroup];
    alignas(64) uint32_t words[kElements];
    draw(seed, first, b);
    __builtin_memcpy(words, b, sizeof words);
    const auto drop = [&](int64_t i) {
      y[at + i] = unit24(words[i]) >= ratio ? x[at + i] * scale : T(0);
    };
    if (at + kElements <= n) {
      for (int64_t i = 0; i < kElements; ++i) drop(i);
    } else {
      for (int64_t i = 0; i < n - at; ++i) drop(i);
    }
  }
}

}  // namespace

namespace CATENA_ISA {

CATENA_LOOPS(random) {
  tables.random = {&bits,         &halves,        &uniform_float,  &uniform_double,
                   &normal_float, &normal_double, &dropout<float>, &dropout<double>};
}

}  // namespace CATENA_ISA

#undef CATENA_LOW_LANES
#undef CATENA_HIGH_LANES

}  // namespace catena::host
