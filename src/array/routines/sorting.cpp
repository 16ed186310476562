#include "catena/array/sorting.h"

#include <algorithm>

#include "array/one_wait.h"
#include "array/result_into.h"
#include "array/rows_along_axis.h"
#include "catena/array/along_axis.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/scan.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/index.h"
#include "catena/kernels/sort.h"

namespace catena {
namespace {

void require_sorted_vector(const char* what, const Array& a) {
  CATENA_CHECK(ShapeError, a.ndim() == 1, "expected ", what, " to be 1-d, got shape ", a.shape());
}

}  // namespace

Array sort(const Array& a, OptionalAxis axis, const Out& out) {
  const EntryScope call("sort");
  const Array* const into = destination(out);
  const RowsAlongAxis rows(a, axis);
  const Array values = rows.make(rows.extent(), a.dtype());
  if (values.size() > 0)
    kernels::sort(a.device(), SortCall{&rows.input(), false, &values, nullptr});
  return result_into(rows.restore(values), into);
}

Array argsort(const Array& a, OptionalAxis axis) {
  const EntryScope call("argsort");
  // Here NumPy treats a 0-d array as one element, but not in sort.
  const RowsAlongAxis rows(a.ndim() ? a : a.reshape({1}), axis);
  const Array positions = rows.make(rows.extent(), Dtype::kInt64);
  if (positions.size() > 0)
    kernels::sort(a.device(), SortCall{&rows.input(), false, nullptr, &positions});
  return rows.restore(positions);
}

Array lexsort(std::span<const Array> keys, Axis axis) {
  const EntryScope call("lexsort");
  CATENA_CHECK(ValueError, !keys.empty(), "expected at least one key");
  Array order = argsort(keys.front(), axis);
  for (const Array& key : keys.subspan(1)) {
    check_same_device(keys.front(), key);
    CATENA_CHECK(ShapeError, key.shape() == keys.front().shape(), "keys of shapes ",
                 keys.front().shape(), " and ", key.shape(), "; expected one shape");
    if (key.ndim() == 0) continue;
    const auto known = OutOfRange::kWrap;
    const Array next = argsort(take_along_axis(key, order, axis, known), axis);
    order = take_along_axis(order, next, axis, known);
  }
  return order;
}
Array lexsort(std::initializer_list<Array> keys, Axis axis) {
  const EntryScope call("lexsort");
  return lexsort(std::span<const Array>(keys.begin(), keys.size()), axis);
}

std::pair<Array, Array> topk(const Array& a, int64_t k, OptionalAxis axis, YesNo largest) {
  const EntryScope call("topk");
  const RowsAlongAxis rows(a, axis);
  CATENA_CHECK(ValueError, k >= 0 && k <= rows.extent(), "expected k of 0 to ", rows.extent(),
               ", the extent of the axis of shape ", a.shape(), ", got ", k);
  const Array values = rows.make(k, a.dtype()), positions = rows.make(k, Dtype::kInt64);
  if (values.size() > 0)
    kernels::sort(a.device(), SortCall{&rows.input(), largest, &values, &positions});
  return {rows.restore(values), rows.restore(positions)};
}

Array searchsorted(const Array& sorted, const Operand& values, bool right) {
  const EntryScope call("searchsorted");
  require_sorted_vector("the sorted array", sorted);
  const Array v = values.array() ? *values.array()
                                 : scalar_array(values.scalar(),
                                                {values.scalar().default_dtype(), sorted.device()});
  check_same_device(sorted, v);
  const Dtype dtype = promote(sorted.dtype(), v.dtype());
  Array result = Array::uninitialized(v.shape(), Dtype::kInt64, v.device());
  if (result.size() > 0) {
    kernels::searchsorted(v.device(), {sorted.astype(dtype, false).contiguous(),
                                       v.astype(dtype, false).contiguous(), right, result});
  }
  return result;
}

Array digitize(const Array& x, const Array& bins, bool right) {
  const EntryScope call("digitize");
  CATENA_CHECK(ValueError, bins.ndim() == 1, "expected bins to be 1-d, got shape ", bins.shape());
  check_same_device(x, bins);
  const int64_t n = bins.size();
  if (n < 2) return searchsorted(bins, x, !right);
  refuse_capture(bins);
  const Array before = bins(Slice(0, n - 1)), after = bins(Slice(1, n));
  const Array verdict = empty({2}, {Dtype::kBool, bins.device()});
  verdict[0].assign(all(less_equal(before, after)));
  verdict[1].assign(all(greater_equal(before, after)));
  const std::vector<bool> monotonic = verdict.to_vector<bool>();
  CATENA_CHECK(ValueError, monotonic[0] || monotonic[1],
               "expected bins that increase or decrease monotonically");
  if (monotonic[0]) return searchsorted(bins, x, !right);
  return subtract(n, searchsorted(flip(bins), x, !right));
}

namespace {

// The counts, from the positions of first occurrences among n sorted elements.
Array run_lengths(const Array& first, int64_t n) { return diff(first, 1, 0, {}, Operand(n)); }

// Distinct slices: rows sorted by their elements, the first element being the most significant one.
Unique unique_slices(const Array& a, const UniqueOptions& options) {
  const int axis = normalize_axis(*options.axis, a.ndim());
  const Array moved = moveaxis(a, axis, 0);
  const int64_t n = moved.shape()[0], width = n > 0 ? a.size() / n : 0;
  const Array rows = moved.reshape({n, width});
  std::vector<Array> keys;
  for (int64_t k = width; k-- > 0;) keys.push_back(rows(Slice(), k));
  Unique result;
  const Array order = keys.empty() ? arange(n, a.device()) : lexsort(keys, 0);
  const Array sorted = take(rows, order, 0, OutOfRange::kWrap);
  Array starts = ones({n}, {Dtype::kBool, a.device()});
  if (n > 1)
    starts(Slice(1, none))
        .assign(any(not_equal(sorted(Slice(1, none)), sorted(Slice(0, n - 1))), 1));
  const Array first = flatnonzero(starts);
  Shape shape = moved.shape();
  shape[0] = first.size();
  const Array values = take(sorted, first, 0, OutOfRange::kWrap).reshape(shape);
  result.values = moveaxis(values, 0, axis).contiguous();
  if (options.return_index) result.index = take(order, first, 0, OutOfRange::kWrap);
  if (options.return_counts) result.counts = run_lengths(first, n);
  if (options.return_inverse) {
    result.inverse = empty({n}, {Dtype::kInt64, a.device()});
    index_put(result.inverse, {order}, subtract(cumsum(starts), 1), OutOfRange::kWrap);
  }
  return result;
}

}  // namespace

Unique unique(const Array& a, const UniqueOptions& options) {
  const EntryScope call("unique");
  if (options.axis) return unique_slices(a, options);
  const Array x = a.ravel();
  const int64_t n = x.size();
  const bool ordered = options.return_index || options.return_inverse;
  Unique result;
  Array sorted = empty_like(x), order, starts = empty({n}, {Dtype::kBool, a.device()});
  if (ordered) order = empty({n}, {Dtype::kInt64, a.device()});
  if (n > 0) {
    refuse_capture(a);
    const Array input = x.contiguous().reshape({1, n}), values = sorted.reshape({1, n});
    const Array positions = ordered ? order.reshape({1, n}) : Array();
    kernels::sort(a.device(), SortCall{&input, false, &values, ordered ? &positions : nullptr});
    kernels::run_starts(a.device(), {sorted, starts});
  }
  const Array first = flatnonzero(starts);
  result.values = take(sorted, first, 0, OutOfRange::kWrap);
  if (options.return_index) result.index = n ? take(order, first, 0, OutOfRange::kWrap) : first;
  if (options.return_counts) result.counts = run_lengths(first, n);
  if (options.return_inverse) {
    result.inverse = zeros({n}, {Dtype::kInt64, a.device()});
    // Each position occurs once, so adding stores the value.
    if (n > 0)
      kernels::scatter_add(a.device(), {result.inverse.reshape({1, n, 1}), order,
                                        subtract(cumsum(starts), 1).reshape({1, n, 1})});
    result.inverse = result.inverse.reshape(a.shape());
  }
  return result;
}

}  // namespace catena
