// Loops over the few rows of a table that a sample reads. See loop.h about linkage.
#include "backends/cpu/loops/sampled_logistic.h"

#include "backends/cpu/loops/lanes.h"

namespace catena::host {
namespace {

template <class T>
using Vector = typename Lanes<T>::Vector;
template <class T>
struct LaneNumbers;
template <>
struct LaneNumbers<float> {
  typedef int32_t Vector __attribute__((vector_size(64)));
};
template <>
struct LaneNumbers<double> {
  typedef int64_t Vector __attribute__((vector_size(128)));
};

static_assert(kTermBlock == kLanes);

template <class T>
using LaneNumbersOf = typename LaneNumbers<T>::Vector;

// The elements of a row behind its last whole vector; the other lanes are zero.
template <class T>
struct Rest {
  int64_t n, count;
  LaneNumbersOf<T> valid;  // of the last kLanes elements of a long row

  CATENA_FN explicit Rest(int64_t size) : n(size), count(size % kLanes) {
    for (int i = 0; i < kLanes; ++i) valid[i] = i >= kLanes - count ? -1 : 0;
  }
  CATENA_FN Vector<T> of(const T* row) const {
    if (n >= kLanes) return (Vector<T>)((LaneNumbersOf<T>)load(row + n - kLanes) & valid);
    T lanes[kLanes] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i] = row[i];
    return load(lanes);
  }
};

// Lanes in groups of `kGroup`: those at even places of a and b, added to those at odd places.
template <int kGroup, class T>
CATENA_FN Vector<T> add_neighbours(Vector<T> a, Vector<T> b) {
  LaneNumbersOf<T> even, odd;
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    const int group = i / kGroup, within = i % kGroup;
    const int from = (group / 2) * 2 * kGroup + within + (group % 2) * int(kLanes);
    even[i] = from;
    odd[i] = from + kGroup;
  }
  return __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, odd);
}
// Lane k of the result is the sum of the lanes of v[k]: each step halves what is left to add.
template <class T>
CATENA_FN Vector<T> sums_of(Vector<T> (&v)[kLanes]) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) v[i] = add_neighbours<1, T>(v[2 * i], v[2 * i + 1]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) v[i] = add_neighbours<2, T>(v[2 * i], v[2 * i + 1]);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) v[i] = add_neighbours<4, T>(v[2 * i], v[2 * i + 1]);
  return add_neighbours<8, T>(v[0], v[1]);
}

template <class T>
void products(const T* x, const T* const* rows, int64_t count, int64_t n, T* products) {
  const int64_t whole = n / kLanes * kLanes;
  const Rest<T> rest(n);
  const Vector<T> x_rest = rest.of(x);
  Vector<T> sums[kLanes] = {};
  for (int64_t k = 0; k < count; ++k) {
    Vector<T> sum = {};
    for (int64_t at = 0; at < whole; at += kLanes) sum += load(x + at) * load(rows[k] + at);
    if (whole < n) sum += x_rest * rest.of(rows[k]);
    sums[k] = sum;
  }
  *reinterpret_cast<Vector<T>*>(products) = sums_of<T>(sums);
}

// exp(-|p|) serves the loss and the coefficient, and it cannot overflow.
template <class T>
void terms(const T* products, const T* signs, int64_t count, T* losses, T* coefficients) {
  const int64_t padded = (count + kLanes - 1) / kLanes * kLanes;
#pragma GCC ivdep
  for (int64_t k = 0; k < padded; ++k) {
    const T p = signs[k] * products[k], e = m::exp(-m::fabs(p));
    losses[k] = (p < T(0) ? -p : T(0)) + m::log1p(e);
    coefficients[k] = -signs[k] * ((p >= T(0) ? e : T(1)) / (T(1) + e));
  }
}

template <int kVectors, class T>
CATENA_FN void combine_part(const T* const* rows, const T* factors, int64_t count, int64_t at,
                            bool accumulate, Vector<T> (&sums)[kVectors], const T* sum) {
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v)
    sums[v] = accumulate ? load(sum + at + v * kLanes) : Vector<T>{};
  for (int64_t k = 0; k < count; ++k)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[v] += load(rows[k] + at + v * kLanes) * factors[k];
}
template <int kVectors, class T>
CATENA_FN void combine_vectors(const T* const* rows, const T* factors, int64_t count, int64_t at,
                               bool accumulate, T* sum) {
  Vector<T> sums[kVectors];
  combine_part<kVectors, T>(rows, factors, count, at, accumulate, sums, sum);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Vector<T>*>(sum + at + v * kLanes) = sums[v];
}
template <class T>
CATENA_FN void combine_elements(const T* const* rows, const T* factors, int64_t count, int64_t n,
                                bool accumulate, T* sum) {
  for (int64_t i = 0; i < n; ++i) {
    T total = accumulate ? sum[i] : T(0);
    for (int64_t k = 0; k < count; ++k) total += rows[k][i] * factors[k];
    sum[i] = total;
  }
}
// The last vector overlaps the one before it. It is computed first, from what was there before.
template <class T>
void combine(const T* const* rows, const T* factors, int64_t count, int64_t n, bool accumulate,
             T* sum) {
  if (n < kLanes) return combine_elements(rows, factors, count, n, accumulate, sum);
  Vector<T> last[1];
  combine_part<1, T>(rows, factors, count, n - kLanes, accumulate, last, sum);
  constexpr int kVectors = sizeof(T) == 4 ? 6 : 3;
  int64_t at = 0;
  for (; at + kVectors * kLanes <= n; at += kVectors * kLanes)
    combine_vectors<kVectors, T>(rows, factors, count, at, accumulate, sum);
  for (; at + 2 * kLanes <= n; at += 2 * kLanes)
    combine_vectors<2, T>(rows, factors, count, at, accumulate, sum);
  for (; at + kLanes <= n; at += kLanes)
    combine_vectors<1, T>(rows, factors, count, at, accumulate, sum);
  *reinterpret_cast<Vector<T>*>(sum + n - kLanes) = last[0];
}

template <class T>
constexpr SampledLogisticLoops<T> sampled_logistic_loops() {
  return {&products<T>, &terms<T>, &combine<T>};
}

}  // namespace

template <>
SampledLogisticTables CATENA_ISA::make_loops() {
  return {sampled_logistic_loops<float>(), sampled_logistic_loops<double>()};
}

}  // namespace catena::host
