// Row loops of softmax and cross entropy. Sums run in lanes, and every element of a row is computed
// in a vector. See loop.h about linkage.
#include "backends/cpu/loops/exponential.h"
#include "backends/cpu/loops/lanes.h"

namespace catena::host {
namespace {

// NaN wins.
template <class T>
T row_max(const T* x, int64_t n) {
  T result = x[0];
  int64_t at = 0;
  if (n >= kLanes) {
    typename Lanes<T>::Vector best = load(x);
    for (at = kLanes; at + kLanes <= n; at += kLanes) {
      const typename Lanes<T>::Vector v = load(x + at);
      best = ((v > best) | (v != v)) ? v : best;
    }
    result = best[0];
    for (int64_t i = 1; i < kLanes; ++i) {
      result = (best[i] > result) | (best[i] != best[i]) ? best[i] : result;
    }
  }
  for (; at < n; ++at) result = (x[at] > result) | (x[at] != x[at]) ? x[at] : result;
  return result;
}

// e^x of what is shifted by the largest number: x <= 0, but for a rounding error that counts as 0.
CATENA_FN float shifted_exp(float x) {
  const float y = exp_of_minus(size_at_most(x < 0.0F ? x : 0.0F, 120.0F));
  return x == x ? y : x;
}
CATENA_FN double shifted_exp(double x) { return m::exp(x); }

// y = exp(x - shift). The last elements are computed in a padded block.
template <class T>
void exp_block(const T* x, T shift, T* y, int64_t n) {
  const int64_t whole = n / kLanes * kLanes;
#pragma GCC ivdep
  for (int64_t i = 0; i < whole; ++i) y[i] = shifted_exp(x[i] - shift);
  if (whole == n) return;
  T block[kLanes];
  load_padded(block, x + whole, n - whole);
#pragma GCC ivdep
  for (int64_t i = 0; i < kLanes; ++i) block[i] = shifted_exp(block[i] - shift);
  store_padded(y + whole, block, n - whole);
}
// Block by block, so that the sum reads its terms from the cache. y may be null.
template <class T>
T exp_row(const T* x, T shift, T* y, int64_t n) {
  constexpr int64_t kBlock = 512;
  T buffer[kBlock], total = 0;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = n - at < kBlock ? n - at : kBlock;
    T* to = y == nullptr ? buffer : y + at;
    exp_block(x + at, shift, to, count);
    total += sum(to, count);
  }
  return total;
}
template <class T>
T exp_shifted(const T* x, T shift, T* y, int64_t n) {
  return exp_row<T>(x, shift, y, n);
}
template <class T>
T sum_exp_shifted(const T* x, T shift, int64_t n) {
  return exp_row<T>(x, shift, nullptr, n);
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
  const int64_t at = n / kLanes * kLanes;
#pragma GCC ivdep
  for (int64_t i = 0; i < at; ++i) gx[i] = gy[i] - shifted_exp(y[i]) * sum;
  if (at == n) return;
  T values[kLanes];
  load_padded(values, y + at, n - at);
  for (int64_t i = 0; i < kLanes; ++i) values[i] = shifted_exp(values[i]) * sum;
  for (int64_t i = 0; i < n - at; ++i) gx[at + i] = gy[at + i] - values[i];
}
template <class T>
void cross_entropy_gradient(const T* x, T shift, T log_sum, T factor, T* gx, int64_t n) {
  const int64_t at = n / kLanes * kLanes;
#pragma GCC ivdep
  for (int64_t i = 0; i < at; ++i) gx[i] = shifted_exp((x[i] - shift) - log_sum) * factor;
  if (at == n) return;
  T values[kLanes];
  load_padded(values, x + at, n - at);
  for (int64_t i = 0; i < kLanes; ++i)
    values[i] = shifted_exp((values[i] - shift) - log_sum) * factor;
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

CATENA_LOOPS(softmax) {
  tables.softmax_float = loops<float>();
  tables.softmax_double = loops<double>();
}

}  // namespace CATENA_ISA

}  // namespace catena::host
