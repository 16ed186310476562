// Loops of rotary positions. See loop.h about linkage.
#include "backends/cpu/loops/rotary.h"

#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

// In float64, for large angles have no digits to spare.
template <class T>
void angles(const typename RotaryLoops<T>::Angles& a, int64_t n) {
  const double *frequencies = a.frequencies, position = a.position;
  const double cos_factor = a.cos_factor, sin_factor = a.sin_factor;
  T *cos = a.cos, *sin = a.sin;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) cos[i] = T(cos_factor * m::cos(position * frequencies[i]));
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) sin[i] = T(sin_factor * m::sin(position * frequencies[i]));
}

template <class T>
void halves(const typename RotaryLoops<T>::Rotate& r, int64_t n) {
  const T *a = r.x, *b = r.x + n, *cos = r.cos, *sin = r.sin;
  T *ya = r.y, *yb = r.y + n;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T first = a[i], second = b[i];
    ya[i] = first * cos[i] - second * sin[i];
    yb[i] = second * cos[i] + first * sin[i];
  }
}

template <class T>
void interleaved(const typename RotaryLoops<T>::Rotate& r, int64_t n) {
  const T *x = r.x, *cos = r.cos, *sin = r.sin;
  T* y = r.y;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T first = x[2 * i], second = x[2 * i + 1];
    y[2 * i] = first * cos[i] - second * sin[i];
    y[2 * i + 1] = second * cos[i] + first * sin[i];
  }
}

template <class T>
constexpr RotaryLoops<T> rotary_loops() {
  return {&angles<T>, &halves<T>, &interleaved<T>};
}

}  // namespace

template <>
RotaryTables CATENA_ISA::make_loops() {
  return {rotary_loops<float>(), rotary_loops<double>()};
}

}  // namespace catena::host
