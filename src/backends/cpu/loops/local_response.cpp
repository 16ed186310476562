// Loops of local response normalization. See loop.h about linkage.
#include "backends/cpu/loops/local_response.h"

#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

template <class T>
void square(const T* x, T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}

// With the number of taps as a constant the sum stays in a register.
template <int64_t kTaps, class T>
CATENA_FN void window_of(const T* x, int64_t step, int64_t taps, T k, T alpha, T* y, int64_t n) {
  const int64_t count = kTaps ? kTaps : taps;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T sum = x[i];
    for (int64_t tap = 1; tap < count; ++tap) sum += x[i + tap * step];
    y[i] = k + alpha * sum;
  }
}
template <class T>
void window(const T* x, int64_t step, int64_t taps, T k, T alpha, T* y, int64_t n) {
  if (taps == 3) return window_of<3>(x, step, taps, k, alpha, y, n);
  if (taps == 5) return window_of<5>(x, step, taps, k, alpha, y, n);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i];
  for (int64_t tap = 1; tap < taps; ++tap) {
    const T* from = x + tap * step;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] += from[i];
  }
  for (int64_t i = 0; i < n; ++i) y[i] = k + alpha * y[i];
}

template <class T>
void power(const T* scale, T beta, T* y, int64_t n) {
  if (beta == T(0.75)) {  // by roots, which are exact and fast
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T root = m::sqrt(scale[i]);
      y[i] = T(1) / (root * m::sqrt(root));
    }
    return;
  }
  // In whole vectors, so that a result does not depend on its position.
  T block[kLanes];
  for (int64_t at = 0; at < n; at += kLanes) {
    const int64_t count = n - at < kLanes ? n - at : kLanes;
    load_padded(block, scale + at, count);
    for (int64_t i = 0; i < kLanes; ++i) block[i] = m::pow(block[i], -beta);
    store_padded(y + at, block, count);
  }
}

template <class T>
void multiply(const T* a, const T* b, T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}
template <class T>
void term(const T* x, const T* gy, const T* power, const T* scale, T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * (gy[i] * power[i] / scale[i]);
}
template <class T>
void gradient(const T* x, const T* gy, const T* power, const T* sum, T factor, T* gx, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) gx[i] = gy[i] * power[i] + factor * x[i] * sum[i];
}

template <class T>
constexpr LocalResponseLoops<T> local_response_loops() {
  return {&square<T>, &window<T>, &power<T>, &multiply<T>, &term<T>, &gradient<T>};
}

}  // namespace

template <>
LocalResponseTables CATENA_ISA::make_loops() {
  return {local_response_loops<float>(), local_response_loops<double>()};
}

}  // namespace catena::host
