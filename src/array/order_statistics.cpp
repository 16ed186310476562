// median, quantile, percentile.
#include <algorithm>
#include <cmath>
#include <limits>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/slots.h"
#include "catena/array/sorting.h"

namespace catena {
namespace {

// The reduced axes as contiguous rows of (kept elements, extent), and the shapes of results.
struct Slices {
  Array input;   // (rows, n), in the dtype the result is computed in
  Shape result;  // of one statistic
  int64_t n = 1;

  Slices(const char* who, const Array& a, const ReduceOptions& options) {
    const Dtype natural = is_float(a.dtype()) ? a.dtype() : Dtype::kFloat64;
    const Dtype dtype = options.dtype.value_or(natural);
    CATENA_CHECK(DtypeError, is_float(dtype), who,
                 ": expected a floating dtype for the result, got ", dtype);
    const Axes axes = normalize_axes(who, options.axes, a.ndim());
    Axes order;
    int64_t rows = 1;
    for (int64_t i = 0; i < a.ndim(); ++i) {
      const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
      const int64_t extent = a.shape()[size_t(i)];
      if (!reduced) order.push_back(i);
      (reduced ? n : rows) *= extent;
      if (!reduced || options.keepdims) result.push_back(reduced ? 1 : extent);
    }
    order.insert(order.end(), axes.begin(), axes.end());
    const Array moved = a.ndim() ? a.transpose(order) : a;
    input = moved.astype(dtype, false).contiguous().reshape({rows, n});
  }
};

// Elements of the given ranks in every row: columns of (rows, ranks.size()).
Array ranked(const Slices& slices, const std::vector<int64_t>& ranks) {
  const Array output = Array::uninitialized({slices.input.shape()[0], int64_t(ranks.size())},
                                            slices.input.dtype(), slices.input.device());
  if (output.size() > 0) kernels::order_statistics(output.device(), slices.input, ranks, output);
  return output;
}

Array column(const Array& table, const std::vector<int64_t>& ranks, int64_t rank) {
  const auto place = std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
  return table(Slice(), int64_t(place));
}

// NaN comes last, so one look tells whether a row has any.
Array spread_nan(const Array& value, const Array& last) { return where(isnan(last), last, value); }

void sort_ranks(std::vector<int64_t>& ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
}

Array deliver(const char* who, const Array& value, const Shape& shape,
              const ReduceOptions& options) {
  const Array result = value.reshape(shape);
  if (!options.out) return result;
  check_same_device(who, value, *options.out);
  CATENA_CHECK(ShapeError, options.out->shape() == shape, who, ": the output has shape ",
               options.out->shape(), ", the result has ", shape);
  options.out->assign(result);
  return *options.out;
}

// Between the neighbours of position q (n - 1), by NumPy's formula.
Array interpolate(const Array& table, const std::vector<int64_t>& ranks, double q, int64_t n) {
  const double position = q * static_cast<double>(n - 1);
  const auto below = std::min(static_cast<int64_t>(std::floor(position)), n - 1);
  const Array a = column(table, ranks, below), b = column(table, ranks, std::min(below + 1, n - 1));
  const double t = position - static_cast<double>(below);
  const Array step = subtract(b, a);
  return t < 0.5 ? add(a, multiply(step, t)) : subtract(b, multiply(step, 1 - t));
}

Array quantiles(const char* who, const Array& a, const std::vector<double>& q, double scale,
                const ReduceOptions& options, bool list) {
  CATENA_CHECK(DtypeError, a.dtype() != Dtype::kBool, who,
               ": elements of bool cannot be interpolated; convert them with astype");
  const Slices slices(who, a, options);
  const int64_t n = slices.n, rows = slices.input.shape()[0];
  CATENA_CHECK(ValueError, n > 0 || rows == 0, who,
               ": no elements along the reduced axes of shape ", a.shape());
  std::vector<int64_t> ranks{n - 1};
  for (double x : q) {
    CATENA_CHECK(ValueError, x >= 0 && x <= scale, who, ": expected q of 0 to ", scale, ", got ",
                 x);
    const auto below = static_cast<int64_t>(std::floor(x / scale * static_cast<double>(n - 1)));
    ranks.push_back(std::min(below, n - 1));
    ranks.push_back(std::min(below + 1, n - 1));
  }
  sort_ranks(ranks);
  Shape shape = slices.result;
  if (list) shape.insert(shape.begin(), static_cast<int64_t>(q.size()));
  const Array results =
      empty({static_cast<int64_t>(q.size()), rows}, {slices.input.dtype(), a.device()});
  if (results.size() > 0) {
    const Array table = ranked(slices, ranks), last = column(table, ranks, n - 1);
    for (size_t i = 0; i < q.size(); ++i) {
      results[int64_t(i)].assign(spread_nan(interpolate(table, ranks, q[i] / scale, n), last));
    }
  }
  return deliver(who, results, shape, options);
}

}  // namespace

Array median(const Array& a, const ReduceOptions& options) {
  const Slices slices("median", a, options);
  const int64_t n = slices.n, rows = slices.input.shape()[0];
  if (n == 0 || rows == 0) {
    const Array nan =
        full({rows}, std::numeric_limits<double>::quiet_NaN(), {slices.input.dtype(), a.device()});
    return deliver("median", nan, slices.result, options);
  }
  std::vector<int64_t> ranks{(n - 1) / 2, n / 2, n - 1};
  sort_ranks(ranks);
  const Array table = ranked(slices, ranks);
  Array middle = column(table, ranks, n / 2);
  if (n % 2 == 0) {
    // 16-bit floats round once, as the mean does.
    const Dtype wide = middle.itemsize() == 2 ? Dtype::kFloat32 : middle.dtype();
    middle = divide(add(column(table, ranks, n / 2 - 1), middle, Out(wide)), 2)
                 .astype(middle.dtype(), false);
  }
  return deliver("median", spread_nan(middle, column(table, ranks, n - 1)), slices.result, options);
}

Array quantile(const Array& a, double q, const ReduceOptions& options) {
  return quantiles("quantile", a, {q}, 1, options, false);
}
Array quantile(const Array& a, const std::vector<double>& q, const ReduceOptions& options) {
  return quantiles("quantile", a, q, 1, options, true);
}
Array percentile(const Array& a, double q, const ReduceOptions& options) {
  return quantiles("percentile", a, {q}, 100, options, false);
}
Array percentile(const Array& a, const std::vector<double>& q, const ReduceOptions& options) {
  return quantiles("percentile", a, q, 100, options, true);
}

}  // namespace catena
