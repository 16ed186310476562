// Row loops of softmax and cross entropy. Sums run in lanes, exponentials through libmvec; every
// element of a row takes the vector form. See loop.h about linkage.
#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

// Sum of the lanes, pairwise.
template <class T>
inline __attribute__((always_inline)) T join(T* lanes) {
  for (int64_t half = kLanes / 2; half >= 1; half /= 2) {
    for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

template <class T>
T row_max(const T* x, int64_t n) {
  T lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = x[i < n ? i : 0];
  int64_t at = kLanes;
  for (; at + kLanes <= n; at += kLanes) {
    for (int64_t i = 0; i < kLanes; ++i) {
      const T v = x[at + i];
      lanes[i] = (v > lanes[i]) | (v != v) ? v : lanes[i];
    }
  }
  T result = lanes[0];
  for (int64_t i = 1; i < kLanes; ++i)
    result = (lanes[i] > result) | (lanes[i] != lanes[i]) ? lanes[i] : result;
  for (; at < n; ++at) result = (x[at] > result) | (x[at] != x[at]) ? x[at] : result;
  return result;
}

// Calls f(block of kLanes inputs, block of kLanes outputs, count) along a row; y may be null.
template <class T, bool kStore>
inline __attribute__((always_inline)) T exp_row(const T* x, T shift, T* y, int64_t n) {
  T sums[kLanes] = {};
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) {
    T values[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) values[i] = m::exp(x[at + i] - shift);
    for (int64_t i = 0; i < kLanes; ++i) sums[i] += values[i];
    if constexpr (kStore) {
      for (int64_t i = 0; i < kLanes; ++i) y[at + i] = values[i];
    }
  }
  if (at < n) {
    T values[kLanes];
    load_padded(values, x + at, n - at);
    for (int64_t i = 0; i < kLanes; ++i) values[i] = m::exp(values[i] - shift);
    for (int64_t i = 0; i < n - at; ++i) sums[i] += values[i];
    if constexpr (kStore) store_padded(y + at, values, n - at);
  }
  return join(sums);
}
template <class T>
T exp_shifted(const T* x, T shift, T* y, int64_t n) {
  return exp_row<T, true>(x, shift, y, n);
}
template <class T>
T sum_exp_shifted(const T* x, T shift, int64_t n) {
  return exp_row<T, false>(x, shift, nullptr, n);
}

template <class T>
void scale(T* y, T factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}
template <class T>
void subtract(const T* x, T shift, T value, T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - shift) - value;
}
template <class T>
void gradient(const T* y, const T* gy, T dot, T* gx, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) gx[i] = y[i] * (gy[i] - dot);
}
template <class T>
void log_gradient(const T* y, const T* gy, T sum, T* gx, int64_t n) {
  int64_t at = 0;
#pragma GCC ivdep
  for (; at < n / kLanes * kLanes; ++at) gx[at] = gy[at] - m::exp(y[at]) * sum;
  if (at == n) return;
  T values[kLanes];
  load_padded(values, y + at, n - at);
  for (int64_t i = 0; i < kLanes; ++i) values[i] = m::exp(values[i]) * sum;
  for (int64_t i = 0; i < n - at; ++i) gx[at + i] = gy[at + i] - values[i];
}
template <class T>
T dot(const T* a, const T* b, int64_t n) {
  T sums[kLanes] = {};
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) {
    for (int64_t i = 0; i < kLanes; ++i) sums[i] += a[at + i] * b[at + i];
  }
  for (int64_t i = 0; i < n - at; ++i) sums[i] += a[at + i] * b[at + i];
  return join(sums);
}
template <class T>
T sum(const T* a, int64_t n) {
  T sums[kLanes] = {};
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) {
    for (int64_t i = 0; i < kLanes; ++i) sums[i] += a[at + i];
  }
  for (int64_t i = 0; i < n - at; ++i) sums[i] += a[at + i];
  return join(sums);
}
template <class T>
void cross_entropy_gradient(const T* x, T lse, T factor, T* gx, int64_t n) {
  int64_t at = 0;
#pragma GCC ivdep
  for (; at < n / kLanes * kLanes; ++at) gx[at] = m::exp(x[at] - lse) * factor;
  if (at == n) return;
  T values[kLanes];
  load_padded(values, x + at, n - at);
  for (int64_t i = 0; i < kLanes; ++i) values[i] = m::exp(values[i] - lse) * factor;
  store_padded(gx + at, values, n - at);
}

template <class T>
constexpr SoftmaxLoops<T> loops() {
  return {&row_max<T>,
          &exp_shifted<T>,
          &sum_exp_shifted<T>,
          &scale<T>,
          &subtract<T>,
          &gradient<T>,
          &log_gradient<T>,
          &dot<T>,
          &sum<T>,
          &cross_entropy_gradient<T>};
}

}  // namespace

namespace CATENA_ISA {

void fill_softmax(Tables& tables) {
  tables.softmax_float = loops<float>();
  tables.softmax_double = loops<double>();
}

}  // namespace CATENA_ISA

}  // namespace catena::host
