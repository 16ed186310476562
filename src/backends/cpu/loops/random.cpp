// Random numbers and dropout masks from Philox blocks; blocks of 16 elements, so that everything
// vectorises. See loop.h about linkage and about libmvec.
#include "backends/cpu/loops/loop.h"
#include "kernels/philox.h"

namespace catena::host {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

// Words of kLanes consecutive blocks.
struct Words {
  alignas(64) uint32_t word[4][kLanes];
};
inline __attribute__((always_inline)) void draw(uint64_t seed, uint64_t first, Words& w) {
  for (int64_t i = 0; i < kLanes; ++i) {
    const philox::Block b = philox::block(seed, first + uint64_t(i));
    for (int k = 0; k < 4; ++k) w.word[k][i] = b.word[k];
  }
}

// Calls f(words, values) for each group of kLanes elements and stores what it leaves in values.
template <class T, class F>
inline __attribute__((always_inline)) void generate(uint64_t seed, uint64_t first, T* out,
                                                    int64_t n, F f) {
  for (int64_t at = 0; at < n; at += kLanes) {
    Words w;
    draw(seed, first + uint64_t(at), w);
    alignas(64) T values[kLanes];
    f(w, values);
    if (at + kLanes <= n) {
      for (int64_t i = 0; i < kLanes; ++i) out[at + i] = values[i];
    } else {
      for (int64_t i = 0; i < n - at; ++i) out[at + i] = values[i];
    }
  }
}

inline __attribute__((always_inline)) uint64_t pair(const Words& w, int half, int64_t i) {
  return w.word[2 * half][i] | (uint64_t(w.word[2 * half + 1][i]) << 32);
}

void bits(uint64_t seed, uint64_t first, uint64_t* out, int64_t n) {
  generate(seed, first, out, n, [](const Words& w, uint64_t* v) {
    for (int64_t i = 0; i < kLanes; ++i) v[i] = pair(w, 0, i);
  });
}

void blocks(uint64_t seed, uint64_t first, uint64_t* out, int64_t n) {
  for (int64_t at = 0; at < n; ++at) {
    const philox::Block b = philox::block(seed, first + uint64_t(at));
    out[2 * at] = philox::bits64(b, 0);
    out[2 * at + 1] = philox::bits64(b, 1);
  }
}

void uniform_float(uint64_t seed, uint64_t first, float low, float high, float* out, int64_t n) {
  const float range = high - low;
  generate(seed, first, out, n, [=](const Words& w, float* v) {
    for (int64_t i = 0; i < kLanes; ++i) v[i] = low + range * philox::unit24(w.word[0][i]);
  });
}
void uniform_double(uint64_t seed, uint64_t first, double low, double high, double* out,
                    int64_t n) {
  const double range = high - low;
  generate(seed, first, out, n, [=](const Words& w, double* v) {
    for (int64_t i = 0; i < kLanes; ++i) v[i] = low + range * philox::unit53(pair(w, 0, i));
  });
}
void normal_float(uint64_t seed, uint64_t first, float mean, float deviation, float* out,
                  int64_t n) {
  generate(seed, first, out, n, [=](const Words& w, float* v) {
    for (int64_t i = 0; i < kLanes; ++i) {
      const float u1 = 1.0f - philox::unit24(w.word[0][i]), u2 = philox::unit24(w.word[2][i]);
      const float z = m::sqrt(-2.0f * m::log(u1)) * m::cos(float(kTwoPi) * u2);
      v[i] = mean + deviation * z;
    }
  });
}
void normal_double(uint64_t seed, uint64_t first, double mean, double deviation, double* out,
                   int64_t n) {
  generate(seed, first, out, n, [=](const Words& w, double* v) {
    for (int64_t i = 0; i < kLanes; ++i) {
      const double u1 = 1.0 - philox::unit53(pair(w, 0, i)), u2 = philox::unit53(pair(w, 1, i));
      const double z = m::sqrt(-2.0 * m::log(u1)) * m::cos(kTwoPi * u2);
      v[i] = mean + deviation * z;
    }
  });
}

template <class T>
void dropout(uint64_t seed, uint64_t first, float ratio, T scale, const T* x, T* y, int64_t n) {
  for (int64_t at = 0; at < n; at += kLanes) {
    Words w;
    draw(seed, first + uint64_t(at), w);
    const int64_t count = n - at < kLanes ? n - at : kLanes;
    for (int64_t i = 0; i < count; ++i) {
      y[at + i] = philox::unit24(w.word[0][i]) >= ratio ? x[at + i] * scale : T(0);
    }
  }
}

}  // namespace

namespace CATENA_ISA {

void fill_random(Tables& tables) {
  tables.random = {&bits,         &blocks,        &uniform_float,  &uniform_double,
                   &normal_float, &normal_double, &dropout<float>, &dropout<double>};
}

}  // namespace CATENA_ISA

}  // namespace catena::host
