// Loops over rows with a gamma and beta for each number. See loop.h about linkage.
#include "backends/cpu/loops/row_normalization.h"

#include "backends/cpu/loops/lanes.h"

namespace catena::host {
namespace {

template <class T>
using Loops = RowNormalizationLoops<T>;
template <class T>
using Vector = typename Lanes<T>::Vector;

template <class T>
T sum_of_squares(const T* x, int64_t n) {
  return dot(x, x, n);
}

template <class T>
void add(const T* x, const T* other, T* sum, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) sum[i] = x[i] + other[i];
}

template <bool kGamma, bool kBeta, class T>
CATENA_FN void apply_row(const typename Loops<T>::Apply& a, int64_t n) {
  const T *x = a.x, *gamma = a.gamma, *beta = a.beta;
  const T mean = a.mean, scale = a.scale, rest = a.rest;
  T* y = a.y;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T v = (x[i] - mean) * scale + rest;
    if (kGamma) v *= gamma[i];
    if (kBeta) v += beta[i];
    y[i] = v;
  }
}
template <class T>
void apply(const typename Loops<T>::Apply& a, int64_t n) {
  if (a.gamma != nullptr)
    return a.beta ? apply_row<true, true, T>(a, n) : apply_row<true, false, T>(a, n);
  return a.beta ? apply_row<false, true, T>(a, n) : apply_row<false, false, T>(a, n);
}

template <bool kGamma, class T>
CATENA_FN void sums_of_row(const typename Loops<T>::Sums& s, int64_t n) {
  const int64_t whole = n / kLanes * kLanes;
  Vector<T> sums[2];
  add_lanes<T>(
      whole, sums, [&](int64_t at, auto& to) __attribute__((always_inline)) {
        Vector<T> h = load(s.gy + at);
        if (kGamma) h *= load(s.gamma + at);
        to[0] += h;
        to[1] += h * (load(s.x + at) - s.mean);
      });
  T h_rest[kLanes], hx_rest[kLanes];
  for (int64_t i = 0; i < n - whole; ++i) {
    h_rest[i] = kGamma ? s.gy[whole + i] * s.gamma[whole + i] : s.gy[whole + i];
    hx_rest[i] = h_rest[i] * (s.x[whole + i] - s.mean);
  }
  *s.h = join(sums[0], h_rest, n - whole);
  *s.hx = join(sums[1], hx_rest, n - whole);
}
template <class T>
void sums(const typename Loops<T>::Sums& s, int64_t n) {
  s.gamma ? sums_of_row<true, T>(s, n) : sums_of_row<false, T>(s, n);
}

template <bool kGamma, class T>
CATENA_FN void gradient_row(const typename Loops<T>::Gradient& a, int64_t n) {
  const T *x = a.x, *gy = a.gy, *gamma = a.gamma;
  const T mean = a.mean, of_h = a.of_h, of_x = a.of_x, constant = a.constant;
  T* gx = a.gx;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T h = kGamma ? gy[i] * gamma[i] : gy[i];
    gx[i] = of_h * h + (of_x * (x[i] - mean) + constant);
  }
}
template <class T>
void gradient(const typename Loops<T>::Gradient& a, int64_t n) {
  a.gamma ? gradient_row<true, T>(a, n) : gradient_row<false, T>(a, n);
}

template <class T>
void parameters(const typename Loops<T>::Parameters& p, int64_t n) {
  const T *x = p.x, *gy = p.gy;
  const T mean = p.mean, scale = p.scale, rest = p.rest;
  if (T* g_gamma = p.g_gamma) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) g_gamma[i] += gy[i] * ((x[i] - mean) * scale + rest);
  }
  if (T* g_beta = p.g_beta) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) g_beta[i] += gy[i];
  }
}

template <class T>
constexpr Loops<T> row_normalization_loops() {
  return {&sum_of_squares<T>, &add<T>, &apply<T>, &sums<T>, &gradient<T>, &parameters<T>};
}

}  // namespace

template <>
RowNormalizationTables CATENA_ISA::make_loops() {
  return {row_normalization_loops<float>(), row_normalization_loops<double>()};
}

}  // namespace catena::host
