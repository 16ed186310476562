#include "catena/array/calculus.h"

#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/array/sorting.h"

namespace catena {
namespace {

void require_vector(const char* who, const char* what, const Array& a) {
  CATENA_CHECK(ShapeError, a.ndim() == 1, who, ": expected ", what, " to be 1-d, got shape ",
               a.shape());
}

// The axis moved to the end, in a float dtype.
Array floats_along(const Array& a, int axis) {
  return moveaxis(is_float(a.dtype()) ? a : a.astype(Dtype::kFloat64), axis, -1);
}

Array last(const Array& a, std::optional<int64_t> from, std::optional<int64_t> to) {
  return a(ellipsis, Slice(from, to));
}

// Distances of neighbours from 1-d coordinates of n samples.
Array distances(const char* who, const Array& coordinates, int64_t n) {
  require_vector(who, "coordinates", coordinates);
  CATENA_CHECK(ShapeError, coordinates.size() == n, who, ": ", coordinates.size(),
               " coordinates for ", n, " samples");
  const Array d = diff(coordinates);
  return is_float(d.dtype()) ? d : d.astype(Dtype::kFloat64);
}

// Central differences along the last axis where samples lie `h` apart.
Array inner_even(const Array& f, const Scalar& h) {
  return divide(subtract(last(f, 2, none), last(f, none, -2)), 2 * h.to_double());
}

// The same for the given distances of neighbours: the parabola through three samples.
Array inner_uneven(const Array& f, const Array& d) {
  const Array before = last(d, none, -1), after = last(d, 1, none), both = add(before, after);
  const Array a = negative(divide(after, multiply(before, both))),
              b = divide(subtract(after, before), multiply(before, after)),
              c = divide(before, multiply(after, both));
  return add(add(multiply(a, last(f, none, -2)), multiply(b, last(f, 1, -1))),
             multiply(c, last(f, 2, none)));
}

// Elements [begin, begin + count) of the full correlation of a with v, which is not longer.
Array correlate_part(const Array& a, const Array& v, int64_t begin, int64_t count) {
  const int64_t m = v.size();
  const Array padded = pad(a, m - 1);
  const Array result = empty({count}, {a.dtype(), a.device()});
  const int64_t step = padded.itemsize();
  const int64_t rows =
      std::max<int64_t>(1, (int64_t{1} << 22) / m);  // bounds the memory of windows
  for (int64_t first = 0; first < count; first += rows) {
    const int64_t here = std::min(rows, count - first);
    const Array windows = Array::from_storage(padded.storage(), (begin + first) * step, {here, m},
                                              {step, step}, padded.dtype());
    result(Slice(first, first + here)).assign(matmul(windows.copy(), v));
  }
  return result;
}

// The part of the correlation that the mode asks for; v is not longer than a.
Array correlate_longer(const Array& a, const Array& v, Overlap mode) {
  const int64_t n = a.size(), m = v.size();
  if (mode == Overlap::kFull) return correlate_part(a, v, 0, n + m - 1);
  if (mode == Overlap::kSame) return correlate_part(a, v, (m - 1) / 2, n);
  return correlate_part(a, v, m - 1, n - m + 1);
}

// Both in one dtype, contiguous.
std::pair<Array, Array> sequences(const char* who, const Array& a, const Array& v) {
  require_vector(who, "both arrays", a);
  require_vector(who, "both arrays", v);
  check_same_device(who, a, v);
  CATENA_CHECK(ValueError, a.size() > 0 && v.size() > 0, who,
               ": expected at least one element in both arrays, got ", a.size(), " and ", v.size());
  const Dtype dtype = promote(a.dtype(), v.dtype());
  return {a.astype(dtype, false).contiguous(), v.astype(dtype, false).contiguous()};
}

}  // namespace

Array interp(const Operand& where_, const Array& xp, const Array& fp, std::optional<double> left,
             std::optional<double> right) {
  const Array points =
      where_.array() ? *where_.array() : full({}, where_.scalar(), {Dtype::kFloat64, xp.device()});
  require_vector("interp", "xp", xp);
  require_vector("interp", "fp", fp);
  check_same_device("interp", points, xp);
  check_same_device("interp", xp, fp);
  const int64_t n = xp.size();
  CATENA_CHECK(ShapeError, fp.size() == n, "interp: ", n, " points with ", fp.size(), " values");
  CATENA_CHECK(ValueError, n > 0, "interp: expected at least one point");
  const Array x = points.astype(Dtype::kFloat64, false), at = xp.astype(Dtype::kFloat64, false),
              value = fp.astype(Dtype::kFloat64, false);
  const auto pick = [](const Array& list, const Array& i) {
    return take(list, i, 0, OutOfRange::kClip);
  };
  // The last point at or before x; kClip: the first one for x before all.
  const Array below = subtract(searchsorted(at, x, true), 1), above = add(below, 1);
  const Array x0 = pick(at, below), x1 = pick(at, above), y0 = pick(value, below),
              y1 = pick(value, above);
  const Array slope = divide(subtract(y1, y0), subtract(x1, x0));
  Array y = add(multiply(slope, subtract(x, x0)), y0);
  // Infinities: from the other end, and level lines.
  y = where(isnan(y), add(multiply(slope, subtract(x, x1)), y1), y);
  y = where(logical_and(isnan(y), equal(y0, y1)), y0, y);
  y = where(logical_or(equal(x, x0), greater_equal(below, n - 1)), y0, y);
  y = where(less(x, at[0]), left ? full({}, *left, {x.device()}) : value[0], y);
  y = where(greater(x, at[n - 1]), right ? full({}, *right, {x.device()}) : value[n - 1], y);
  return where(isnan(x), x, y);
}

Array gradient(const Array& f, const Operand& spacing, int64_t axis) {
  const int ax = normalize_axis("gradient", axis, f.ndim());
  const Array x = floats_along(f, ax);
  const int64_t n = x.shape(-1);
  CATENA_CHECK(ValueError, n >= 2, "gradient: expected at least 2 samples along axis ", ax,
               " of shape ", f.shape());
  const Array first = subtract(last(x, 1, 2), last(x, 0, 1)),
              final = subtract(last(x, -1, none), last(x, -2, -1));
  std::vector<Array> parts;
  if (const Array* coordinates = spacing.array(); coordinates && coordinates->ndim() > 0) {
    check_same_device("gradient", f, *coordinates);
    const Array d = distances("gradient", *coordinates, n);
    parts = {divide(first, d(Slice(0, 1))), inner_uneven(x, d), divide(final, d(Slice(-1, none)))};
  } else {
    const Scalar h = coordinates ? coordinates->item() : spacing.scalar();
    parts = {divide(first, h.to_double()), inner_even(x, h), divide(final, h.to_double())};
  }
  return moveaxis(concatenate(parts, -1), -1, ax).contiguous();
}

std::vector<Array> gradient(const Array& f, double spacing) {
  std::vector<Array> result;
  for (int d = 0; d < f.ndim(); ++d) result.push_back(gradient(f, spacing, d));
  return result;
}

Array trapezoid(const Array& y, const Operand& spacing, int64_t axis) {
  const int ax = normalize_axis("trapezoid", axis, y.ndim());
  const Array samples = floats_along(y, ax);
  const Array pairs = add(last(samples, 1, none), last(samples, none, -1));
  if (spacing.array() == nullptr)
    return sum(divide(multiply(pairs, spacing.scalar().to_double()), 2), -1);
  const Array& x = *spacing.array();
  check_same_device("trapezoid", y, x);
  Array d;
  if (x.ndim() > 1 || y.ndim() == 1) {
    CATENA_CHECK(ShapeError, x.shape() == y.shape(), "trapezoid: coordinates of shape ", x.shape(),
                 " for samples of shape ", y.shape());
    d = diff(floats_along(x, ax));
  } else {
    d = distances("trapezoid", x, samples.shape(-1));
  }
  return sum(divide(multiply(pairs, d), 2), -1);
}

Array convolve(const Array& a, const Array& v, Overlap mode) {
  const auto [x, y] = sequences("convolve", a, v);
  return x.size() >= y.size() ? correlate_longer(x, flip(y).contiguous(), mode)
                              : correlate_longer(y, flip(x).contiguous(), mode);
}

Array correlate(const Array& a, const Array& v, Overlap mode) {
  const auto [x, y] = sequences("correlate", a, v);
  return x.size() >= y.size() ? correlate_longer(x, y, mode)
                              : flip(correlate_longer(y, x, mode)).copy();
}

Array cross(const Array& a, const Array& b, int64_t axis) {
  check_same_device("cross", a, b);
  const Array x = moveaxis(a, axis, -1), y = moveaxis(b, axis, -1);
  CATENA_CHECK(ShapeError,
               a.ndim() > 0 && b.ndim() > 0 && x.shape(-1) == y.shape(-1) &&
                   (x.shape(-1) == 2 || x.shape(-1) == 3),
               "cross: expected vectors of 3 (or of 2) elements along axis ", axis, ", got shapes ",
               a.shape(), " and ", b.shape());
  const auto component = [&](int i, int j) {
    return subtract(multiply(x(ellipsis, i), y(ellipsis, j)),
                    multiply(x(ellipsis, j), y(ellipsis, i)));
  };
  if (x.shape(-1) == 2) return component(0, 1);
  return moveaxis(stack({component(1, 2), component(2, 0), component(0, 1)}, -1), -1, axis)
      .contiguous();
}

}  // namespace catena
