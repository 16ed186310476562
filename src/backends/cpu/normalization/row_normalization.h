// Parts of the two kernels of row normalization: the statistics of rows, and gradients of gamma and
// beta.
#pragma once

#include <cmath>
#include <vector>

#include "backends/cpu/common/blocks.h"
#include "backends/cpu/normalization/moments.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/row_normalization.h"

namespace catena::host {

// Of one row. The mean lacks `rest`.
template <class C>
struct RowStatistics {
  C inverse, mean, rest;

  // m: of the row's numbers.
  static RowStatistics of(const Moments& m, double eps, bool centred) {
    if (!centred) {
      const double mean = m.mean + m.rest;
      return {C(1 / std::sqrt(m.squares / m.n + mean * mean + eps)), C(0), C(0)};
    }
    return {C(1 / std::sqrt(m.squares / m.n + eps)), C(m.mean), rest_of<C>(m)};
  }
  static RowStatistics read(const Array& from, int64_t row, int64_t rows, bool centred) {
    const C* s = from.data<C>();
    if (!centred) return {s[row], C(0), C(0)};
    return {s[row], s[rows + row], s[2 * rows + row]};
  }
  void write(const Array& to, int64_t row, int64_t rows, bool centred) const {
    C* s = to.data<C>();
    s[row] = inverse;
    if (!centred) return;
    s[rows + row] = mean;
    s[2 * rows + row] = rest;
  }
};

// gx = inverse * (h - sum of h / m - (x - mean - rest) * inverse^2 * sum of h * (x - mean) / m) as
// of_h * h + of_x * (x - mean) + constant.
template <class C>
struct RowGradient {
  double of_h, of_x, constant;

  // h, hx: the sums of h and of h * (x - mean), where the mean lacks its rest.
  RowGradient(const RowStatistics<C>& s, double h, double hx, int64_t size, bool centred) {
    const double inverse = double(s.inverse), m = double(size);
    of_h = inverse;
    of_x = -(inverse * ((hx - double(s.rest) * h) / m)) * inverse * inverse;
    constant = (centred ? -inverse * (h / m) : 0) - of_x * double(s.rest);
  }
};

// The gradient of gamma or beta from its parts, `parts` vectors of numbers one after the other,
// which are added in order. It is rounded once.
template <class C, class Part>
void store_parameter(const std::vector<Part>& from, int64_t parts, const Array* to,
                     bool accumulate) {
  if (to == nullptr) return;
  const int64_t channels = to->size();
  parallel_ranges(channels, 16, threads_for(parts * channels), [&](int64_t begin, int64_t end) {
    std::vector<double> sums(size_t(end - begin));
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t c = begin; c < end; ++c)
        sums[size_t(c - begin)] += double(from[size_t(part * channels + c)]);
    visit_float("row_normalization_grad", to->dtype(), [&]<class T>(TypeTag<T>) {
      using Wide = typename ComputeType<T>::type;
      T* target = to->data<T>();
      for (int64_t c = begin; c < end; ++c) {
        const Wide sum = Wide(C(sums[size_t(c - begin)]));
        target[c] = static_cast<T>(accumulate ? Wide(target[c]) + sum : sum);
      }
    });
  });
}

// Rows with a gamma for each number: one group, one position, inner = 1. For both types.
void normalize_wide_rows(const RowNormalizationCall& call);
void normalize_wide_rows_grad(const RowNormalizationGradCall& call);

}  // namespace catena::host
