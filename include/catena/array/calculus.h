// Interpolation, differences and integrals of samples, convolution, cross products, as NumPy.
// Results are new arrays on the arrays' device; nothing waits for a GPU.
#pragma once

#include <optional>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// Values at x of the piecewise linear function through (xp, fp), float64, of the shape of x. xp is
// ascending (not checked), 1-d and as long as fp, at least one point (ShapeError, ValueError).
// `left` and `right` are the values before and behind the points; absent: fp's first and last. With
// a period (ValueError for 0 or NaN) the function repeats: xp need not ascend, left and right do
// not count.
Array interp(const Operand& x, const Array& xp, const Array& fp, std::optional<double> left = {},
             std::optional<double> right = {}, std::optional<double> period = {});

// How the derivative at the first and the last sample is taken: from the difference to the
// neighbour, or from the parabola through three samples.
enum class EdgeOrder : uint8_t { kFirst = 1, kSecond = 2 };
// The derivative along one axis: second-order central differences, one-sided ones at both ends.
// `spacing` is the distance of samples, or their 1-d coordinates. In the dtype of f; integers give
// float64. Differences of coordinates of any dtype are taken in floats. ValueError
// for fewer than 2 samples (3 with kSecond), ShapeError for coordinates of another length.
Array gradient(const Array& f, const Operand& spacing, Axis axis,
               EdgeOrder edges = EdgeOrder::kFirst);
// Along every axis with one spacing.
std::vector<Array> gradient(const Array& f, double spacing = 1,
                            EdgeOrder edges = EdgeOrder::kFirst);

// Differences of neighbours of the flattened array, with numbers put before and behind them; in the
// dtype of a (ValueError for a number that it does not hold, DtypeError for bool).
Array ediff1d(const Array& a, const std::vector<Scalar>& to_end = {},
              const std::vector<Scalar>& to_begin = {});
// Adds multiples of the period along an axis so that neighbours differ by at most half of it, where
// they differ by more than `discontinuity` (absent: half the period). Integers give float64.
// ValueError unless period > 0.
Array unwrap(const Array& a, std::optional<double> discontinuity = {}, Axis axis = -1,
             double period = 6.283185307179586);

// Powers of the elements of a 1-d array as columns, (length, columns): from the highest to 0, or
// ascending; by default as many columns as rows. In the dtype of x promoted with int64. ShapeError.
Array vander(const Array& x, std::optional<int64_t> columns = {}, bool increasing = false);
// The polynomial with coefficients p (1-d, highest power first) at x, by Horner's rule.
Array polyval(const Array& p, const Operand& x);

// The integral along an axis by the trapezoidal rule. `spacing` as above; coordinates may also have
// the shape of y. Integers give float64.
Array trapezoid(const Array& y, const Operand& spacing = 1.0, Axis axis = -1);
inline Array trapz(const Array& y, const Operand& spacing = 1.0, Axis axis = -1) {
  return trapezoid(y, spacing, axis);
}

// Which part of all positions at which two sequences of m <= n elements overlap.
enum class Overlap : uint8_t {
  kFull,   // all of them, m + n - 1
  kSame,   // the n in the middle
  kValid,  // those where the shorter one lies inside, n - m + 1
};
// Of 1-d arrays, not empty (ShapeError, ValueError), in the promoted dtype:
// convolve: sum over j of a[j] v[k - j]; correlate: sum over j of a[j + k] v[j]. By matrix products
// over blocks of windows: the work is m n.
Array convolve(const Array& a, const Array& v, Overlap mode = Overlap::kFull);
Array correlate(const Array& a, const Array& v, Overlap mode = Overlap::kValid);

// Cross products of vectors of 3 elements along an axis of both; the other axes broadcast. Vectors
// of 2 elements give the third component alone, without the axis. ShapeError for others.
Array cross(const Array& a, const Array& b, Axis axis = -1);

}  // namespace catena
