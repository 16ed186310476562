#include "catena/array/calculus.h"

#include <algorithm>
#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/array/sorting.h"
#include "catena/core/entry_scope.h"
#include "core/compute_dtype.h"

namespace catena {
namespace {

void require_vector(const char* what, const Array& a) {
  CATENA_CHECK(ShapeError, a.ndim() == 1, "expected ", what, " to be 1-d, got shape ", a.shape());
}

// The dtype of what is computed from elements of `d`.
Dtype result_dtype(Dtype d) { return is_float(d) ? d : Dtype::kFloat64; }

// The axis moved to the end, in a dtype that holds differences and sums of elements: results are
// rounded once.
Array floats_along(const Array& a, int axis) {
  return moveaxis(a.astype(compute_dtype(result_dtype(a.dtype())), false), axis, -1);
}

Array last(const Array& a, std::optional<int64_t> from, std::optional<int64_t> to) {
  return a(ellipsis, Slice(from, to));
}

// Distances between adjacent points, from 1-d coordinates of the samples along the last axis.
Array distances(const Array& coordinates, const Array& samples) {
  require_vector("coordinates", coordinates);
  CATENA_CHECK(ShapeError, coordinates.size() == samples.shape(-1), coordinates.size(),
               " coordinates for ", samples.shape(-1), " samples");
  const Array points = floats_along(coordinates, 0);
  return diff(points.astype(promote(points.dtype(), samples.dtype()), false));
}

// Central differences along the last axis, for samples at distance `h`.
Array inner_even(const Array& f, const Scalar& h) {
  return divide(subtract(last(f, 2, none), last(f, none, -2)), 2 * h.to_double());
}

// The same for given distances: the parabola through three samples.
Array inner_uneven(const Array& f, const Array& d) {
  const Array before = last(d, none, -1), after = last(d, 1, none), both = add(before, after);
  const Array a = negative(divide(after, multiply(before, both))),
              b = divide(subtract(after, before), multiply(before, after)),
              c = divide(before, multiply(after, both));
  return add(add(multiply(a, last(f, none, -2)), multiply(b, last(f, 1, -1))),
             multiply(c, last(f, 2, none)));
}

// The derivative at both ends along the last axis, for distances d (1-d, between adjacent samples)
// or h.
std::pair<Array, Array> linear_ends(const Array& f, const Operand& first, const Operand& final) {
  return {divide(subtract(last(f, 1, 2), last(f, 0, 1)), first),
          divide(subtract(last(f, -1, none), last(f, -2, -1)), final)};
}

// Weights of the parabola through three samples, for distance d1 next to the end and d2 after it.
Array parabolic_end(const Array& end, const Array& next, const Array& third, const Array& d1,
                    const Array& d2) {
  const Array both = add(d1, d2);
  const Array a = negative(divide(add(multiply(d1, 2), d2), multiply(d1, both))),
              b = divide(both, multiply(d1, d2)), c = negative(divide(d1, multiply(d2, both)));
  return add(add(multiply(a, end), multiply(b, next)), multiply(c, third));
}

std::pair<Array, Array> parabolic_ends(const Array& f, const Array& d) {
  const Array back = negative(d);  // distances, seen from the last sample
  return {parabolic_end(last(f, 0, 1), last(f, 1, 2), last(f, 2, 3), last(d, 0, 1), last(d, 1, 2)),
          parabolic_end(last(f, -1, none), last(f, -2, -1), last(f, -3, -2), last(back, -1, none),
                        last(back, -2, -1))};
}

std::pair<Array, Array> parabolic_ends(const Array& f, double h) {
  const auto combine = [](const Array& x, double a, const Array& y, double b, const Array& z,
                          double c) {
    return add(add(multiply(x, a), multiply(y, b)), multiply(z, c));
  };
  return {combine(last(f, 0, 1), -1.5 / h, last(f, 1, 2), 2 / h, last(f, 2, 3), -0.5 / h),
          combine(last(f, -3, -2), 0.5 / h, last(f, -2, -1), -2 / h, last(f, -1, none), 1.5 / h)};
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

// The part of the correlation that the mode selects; v is not longer than a.
Array correlate_longer(const Array& a, const Array& v, Overlap mode) {
  const int64_t n = a.size(), m = v.size();
  if (mode == Overlap::kFull) return correlate_part(a, v, 0, n + m - 1);
  if (mode == Overlap::kSame) return correlate_part(a, v, (m - 1) / 2, n);
  return correlate_part(a, v, m - 1, n - m + 1);
}

// Both in one dtype, contiguous.
std::pair<Array, Array> sequences(const Array& a, const Array& v) {
  require_vector("both arrays", a);
  require_vector("both arrays", v);
  check_same_device(a, v);
  CATENA_CHECK(ValueError, a.size() > 0 && v.size() > 0,
               "expected at least one element in both arrays, got ", a.size(), " and ", v.size());
  const Dtype dtype = promote(a.dtype(), v.dtype());
  return {a.astype(dtype, false).contiguous(), v.astype(dtype, false).contiguous()};
}

// What to put before or after `a`: an array as it is, a number as one element along the axis.
Array as_piece(const Array& a, const Operand& operand, int axis) {
  const Array piece = operand.array() ? *operand.array()
                                      : full({}, operand.scalar(),
                                             {promote(a.dtype(), operand.scalar()), a.device()});
  check_same_device(a, piece);
  if (piece.ndim() > 0) return piece;
  Shape shape = a.shape();
  shape[size_t(axis)] = 1;
  return piece.broadcast_to(shape);
}

}  // namespace

Array diff(const Array& a, int64_t n, Axis axis, const std::optional<Operand>& prepend,
           const std::optional<Operand>& append) {
  const EntryScope call("diff");
  CATENA_CHECK(ValueError, n >= 0, "expected n >= 0, got ", n);
  if (n == 0) return a;
  CATENA_CHECK(ShapeError, a.ndim() > 0, "expected at least one axis, got a 0-d array");
  const int ax = normalize_axis(axis, a.ndim());
  std::vector<Array> pieces;
  if (prepend) pieces.push_back(as_piece(a, *prepend, ax));
  pieces.push_back(a);
  if (append) pieces.push_back(as_piece(a, *append, ax));
  Array x = pieces.size() > 1 ? concatenate(pieces, ax) : a;
  std::vector<Index> low(size_t(ax) + 1, Slice()), high = low;
  for (; n > 0; --n) {
    low.back() = Slice(0, -1);
    high.back() = Slice(1, none);
    const Array before = x.at(std::span<const Index>(low)),
                after = x.at(std::span<const Index>(high));
    x = x.dtype() == Dtype::kBool ? not_equal(after, before) : subtract(after, before);
  }
  return x;
}

namespace {

// Values at x of a periodic function.
Array interp_periodic(const Array& points, const Array& xp, const Array& fp, double period) {
  CATENA_CHECK(ValueError, std::isfinite(period) && period != 0,
               "expected a period other than 0, got ", period);
  const double length = std::abs(period);
  const auto within = [&](const Array& a) {
    return remainder(a.astype(Dtype::kFloat64, false), length);
  };
  const Array wrapped = within(xp), order = argsort(wrapped);
  const Array at = take(wrapped, order, 0, OutOfRange::kWrap),
              value = take(fp, order, 0, OutOfRange::kWrap);
  const auto ends = [](const Array& a, const Array& first, const Array& final) {
    return concatenate({first, a, final});
  };
  return interp(within(points),
                ends(at, subtract(at(Slice(-1, none)), length), add(at(Slice(0, 1)), length)),
                ends(value, value(Slice(-1, none)), value(Slice(0, 1))));
}

}  // namespace

Array interp(const Operand& where_, const Array& xp, const Array& fp, std::optional<double> left,
             std::optional<double> right, std::optional<double> period) {
  const EntryScope call("interp");
  const Array points =
      where_.array() ? *where_.array() : full({}, where_.scalar(), {Dtype::kFloat64, xp.device()});
  require_vector("xp", xp);
  require_vector("fp", fp);
  check_same_device(points, xp);
  check_same_device(xp, fp);
  const int64_t n = xp.size();
  CATENA_CHECK(ShapeError, fp.size() == n, n, " points with ", fp.size(), " values");
  CATENA_CHECK(ValueError, n > 0, "expected at least one point");
  if (period) return interp_periodic(points, xp, fp, *period);
  const Array x = points.astype(Dtype::kFloat64, false), at = xp.astype(Dtype::kFloat64, false),
              value = fp.astype(Dtype::kFloat64, false);
  const auto pick = [](const Array& list, const Array& i) {
    return take(list, i, 0, OutOfRange::kClip);
  };
  // The last point at or before x. kClip: the first one for an x before all points.
  const Array below = subtract(searchsorted(at, x, true), 1), above = add(below, 1);
  const Array x0 = pick(at, below), x1 = pick(at, above), y0 = pick(value, below),
              y1 = pick(value, above);
  const Array slope = divide(subtract(y1, y0), subtract(x1, x0));
  Array y = add(multiply(slope, subtract(x, x0)), y0);
  // Infinities: computed from the other end, and constant between equal values.
  y = where(isnan(y), add(multiply(slope, subtract(x, x1)), y1), y);
  y = where(logical_and(isnan(y), equal(y0, y1)), y0, y);
  y = where(logical_or(equal(x, x0), greater_equal(below, n - 1)), y0, y);
  y = where(less(x, at[0]), left ? full({}, *left, {x.device()}) : value[0], y);
  y = where(greater(x, at[n - 1]), right ? full({}, *right, {x.device()}) : value[n - 1], y);
  return n == 1 ? y : where(isnan(x), x, y);  // NumPy gives a single point's value for NaN too
}

Array gradient(const Array& f, const Operand& spacing, Axis axis, EdgeOrder edges) {
  const EntryScope call("gradient");
  const int ax = normalize_axis(axis, f.ndim());
  const Array x = floats_along(f, ax);
  const int64_t n = x.shape(-1), least = static_cast<int64_t>(edges) + 1;
  CATENA_CHECK(ValueError, n >= least, "expected at least ", least, " samples along axis ", ax,
               " of shape ", f.shape());
  const bool straight = edges == EdgeOrder::kFirst;
  std::pair<Array, Array> ends;
  Array inner;
  if (const Array* coordinates = spacing.array(); coordinates && coordinates->ndim() > 0) {
    check_same_device(f, *coordinates);
    const Array d = distances(*coordinates, x);
    ends = straight ? linear_ends(x, d(Slice(0, 1)), d(Slice(-1, none))) : parabolic_ends(x, d);
    inner = inner_uneven(x, d);
  } else {
    const double h = (coordinates ? coordinates->item() : spacing.scalar()).to_double();
    ends = straight ? linear_ends(x, h, h) : parabolic_ends(x, h);
    inner = inner_even(x, h);
  }
  const Array slope = concatenate({ends.first, inner, ends.second}, -1);
  return moveaxis(slope.astype(result_dtype(f.dtype()), false), -1, ax).contiguous();
}

std::vector<Array> gradient(const Array& f, double spacing, EdgeOrder edges) {
  const EntryScope call("gradient");
  std::vector<Array> result;
  for (int d = 0; d < f.ndim(); ++d) result.push_back(gradient(f, spacing, d, edges));
  return result;
}

Array ediff1d(const Array& a, const std::vector<Scalar>& to_end,
              const std::vector<Scalar>& to_begin) {
  const EntryScope call("ediff1d");
  CATENA_CHECK(DtypeError, a.dtype() != Dtype::kBool,
               "expected numbers, got bool; subtract is not defined for it");
  const Array flat = a.ravel(), steps = diff(flat);
  const auto list = [&](const std::vector<Scalar>& numbers) {
    const Array host = empty({int64_t(numbers.size())}, {a.dtype(), cpu()});
    for (size_t k = 0; k < numbers.size(); ++k) {
      CATENA_CHECK(ValueError, promote(a.dtype(), numbers[k]) == a.dtype(), numbers[k],
                   " does not fit the dtype ", a.dtype(), " of the array");
      host(int64_t(k)).fill(numbers[k]);
    }
    return host.to(a.device());
  };
  return concatenate({list(to_begin), steps, list(to_end)});
}

Array unwrap(const Array& a, std::optional<double> discontinuity, Axis axis, double period) {
  const EntryScope call("unwrap");
  const int ax = normalize_axis(axis, a.ndim());
  CATENA_CHECK(ValueError, period > 0, "expected a period above 0, got ", period);
  const Array x = floats_along(a, ax);
  const double half = period / 2;
  const Array steps = diff(x);
  Array wrapped = subtract(remainder(add(steps, half), period), half);
  // A step of exactly half a period upwards keeps its sign.
  wrapped = where(logical_and(equal(wrapped, -half), greater(steps, 0)), half, wrapped);
  const Array jumps =
      where(less(absolute(steps), discontinuity.value_or(half)), 0.0, subtract(wrapped, steps));
  const Array result = concatenate({last(x, 0, 1), add(last(x, 1, none), cumsum(jumps, -1))}, -1);
  return moveaxis(result.astype(result_dtype(a.dtype()), false), -1, ax).contiguous();
}

Array vander(const Array& x, std::optional<int64_t> columns, bool increasing) {
  const EntryScope call("vander");
  require_vector("x", x);
  const Dtype dtype = promote(x.dtype(), Dtype::kInt64);
  const int64_t n = columns.value_or(x.size());
  CATENA_CHECK(ShapeError, n >= 0, "expected at least 0 columns, got ", n);
  const Array result = empty({x.size(), n}, {dtype, x.device()});
  const Array powers = increasing ? result : flip(result, Axes{1}), base = x.astype(dtype, false);
  // Products of adjacent numbers, as in NumPy; the power function would round differently.
  for (int64_t k = 0; k < n; ++k) {
    const Array column = powers(Slice(), k);
    if (k == 0)
      column.fill(1);
    else
      multiply(powers(Slice(), k - 1), base, column);
  }
  return result;
}

Array polyval(const Array& p, const Operand& x) {
  const EntryScope call("polyval");
  require_vector("p", p);
  if (x.array()) check_same_device(p, *x.array());
  const Array at = x.array() ? *x.array() : full({}, x.scalar(), {p.device()});
  const Dtype dtype = promote(p.dtype(), at.dtype());
  Array y = zeros(at.shape(), {dtype, p.device()});
  for (int64_t k = 0; k < p.size(); ++k) y = add(multiply(y, at), p[k]);
  return y;
}

Array trapezoid(const Array& y, const Operand& spacing, Axis axis) {
  const EntryScope call("trapezoid");
  const int ax = normalize_axis(axis, y.ndim());
  const Array samples = floats_along(y, ax);
  const Array pairs = add(last(samples, 1, none), last(samples, none, -1));
  Dtype dtype = result_dtype(y.dtype());
  if (spacing.array() == nullptr)
    return sum(divide(multiply(pairs, spacing.scalar().to_double()), 2), -1).astype(dtype, false);
  const Array& x = *spacing.array();
  check_same_device(y, x);
  dtype = promote(dtype, result_dtype(x.dtype()));
  Array d;
  if (x.ndim() > 1 || y.ndim() == 1) {
    CATENA_CHECK(ShapeError, x.shape() == y.shape(), "coordinates of shape ", x.shape(),
                 " for samples of shape ", y.shape());
    d = diff(floats_along(x, ax));
  } else {
    d = distances(x, samples);
  }
  return sum(divide(multiply(pairs, d), 2), -1).astype(dtype, false);
}

Array convolve(const Array& a, const Array& v, Overlap mode) {
  const EntryScope call("convolve");
  const auto [x, y] = sequences(a, v);
  return x.size() >= y.size() ? correlate_longer(x, flip(y).contiguous(), mode)
                              : correlate_longer(y, flip(x).contiguous(), mode);
}

Array correlate(const Array& a, const Array& v, Overlap mode) {
  const EntryScope call("correlate");
  const auto [x, y] = sequences(a, v);
  return x.size() >= y.size() ? correlate_longer(x, y, mode)
                              : flip(correlate_longer(y, x, mode)).copy();
}

Array cross(const Array& a, const Array& b, Axis axis) {
  const EntryScope call("cross");
  check_same_device(a, b);
  const Array x = moveaxis(a, axis, -1), y = moveaxis(b, axis, -1);
  CATENA_CHECK(ShapeError,
               a.ndim() > 0 && b.ndim() > 0 && x.shape(-1) == y.shape(-1) &&
                   (x.shape(-1) == 2 || x.shape(-1) == 3),
               "expected vectors of 3 (or of 2) elements along axis ", axis, ", got shapes ",
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
