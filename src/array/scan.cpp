// Running sums and products, and the positions of true elements.
#include "catena/array/scan.h"

#include <algorithm>

#include "array/one_wait.h"
#include "array/result_into.h"
#include "catena/array/creation.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/count.h"
#include "catena/kernels/scan.h"

namespace catena {
namespace {

Dtype cumulative_dtype(Dtype d) {
  if (is_float(d)) return d;
  return is_unsigned_int(d) ? Dtype::kUInt64 : Dtype::kInt64;
}

Array cumulate(bool product, const Array& a, OptionalAxis axis, std::optional<Dtype> dtype,
               const Out& given) {
  const Array* const out = destination(given);
  check_defined(a);
  const Array x = a.ndim() == 1 || (axis && a.ndim()) ? a : a.ravel();
  const int ax = normalize_axis(axis.value_or(0), x.ndim());
  const Dtype to = dtype.value_or(widened_by(cumulative_dtype(a.dtype()), out));
  const bool widens = !is_float(x.dtype()) && (to == Dtype::kInt64 || to == Dtype::kUInt64);
  Array result = Array::uninitialized(x.shape(), to, x.device());
  if (result.size() == 0) return result_into(result, out);
  const Array input = (widens ? x : x.astype(to, false)).contiguous();
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < ax; ++i) outer *= x.shape()[size_t(i)];
  for (int i = ax + 1; i < x.ndim(); ++i) inner *= x.shape()[size_t(i)];
  const Shape shape{outer, x.shape()[size_t(ax)], inner};
  const Array in = input.reshape(shape), sums = result.reshape(shape);
  kernels::scan(x.device(), ScanCall{product, &in, &sums});
  return result_into(result, out);
}

// Positions as (max(ndim, 1), count), in C order.
Array nonzero_positions(const Array& a) {
  const int64_t rows = std::max(a.ndim(), 1);
  if (a.size() == 0) return empty({rows, 0}, {Dtype::kInt64, a.device()});
  refuse_capture(a);
  const Array x = a.contiguous(), count = empty({}, {Dtype::kInt64, a.device()});
  kernels::nonzero_count(a.device(), {x, count});
  const Array positions = empty({rows, count.item<int64_t>()}, {Dtype::kInt64, a.device()});
  if (positions.size() > 0) kernels::nonzero(a.device(), {x, positions});
  return positions;
}

}  // namespace

Array cumsum(const Array& a, OptionalAxis axis, std::optional<Dtype> dtype, const Out& out) {
  const EntryScope call("cumsum");
  return cumulate(false, a, axis, dtype, out);
}
Array cumprod(const Array& a, OptionalAxis axis, std::optional<Dtype> dtype, const Out& out) {
  const EntryScope call("cumprod");
  return cumulate(true, a, axis, dtype, out);
}

std::vector<Array> nonzero(const Array& a) {
  const EntryScope call("nonzero");
  CATENA_CHECK(ShapeError, a.ndim() > 0,
               "expected at least one axis, got a 0-d array; use atleast_1d(a)");
  const Array positions = nonzero_positions(a);
  std::vector<Array> result;
  for (int64_t i = 0; i < a.ndim(); ++i) result.push_back(positions[i]);
  return result;
}

std::vector<Array> where(const Array& condition) {
  const EntryScope call("where");
  CATENA_CHECK(ShapeError, condition.ndim() > 0,
               "expected a condition of at least one axis, got a 0-d array");
  return nonzero(condition);
}

Array flatnonzero(const Array& a) {
  const EntryScope call("flatnonzero");
  return nonzero_positions(a.ravel())[0];
}

Array argwhere(const Array& a) {
  const EntryScope call("argwhere");
  const Array positions = nonzero_positions(a);
  if (a.ndim() > 0) return positions.transpose();
  return empty({positions.shape()[1], 0}, {Dtype::kInt64, a.device()});
}

}  // namespace catena
