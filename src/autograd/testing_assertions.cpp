// Assertions on arrays for tests, on the host.
#include <cmath>
#include <limits>

#include "catena/core/entry_scope.h"
#include "catena/testing.h"

namespace catena::testing {
namespace {

// Holds every value of every dtype.
using Wide = long double;
static_assert(std::numeric_limits<Wide>::digits >= 64);

std::vector<Wide> wide_values(const Array& a) {
  const auto widened = [](const auto& values) {
    return std::vector<Wide>(values.begin(), values.end());
  };
  if (is_float(a.dtype())) return widened(a.to_vector<double>());
  if (a.dtype() == Dtype::kUInt64) return widened(a.to_vector<uint64_t>());
  return widened(a.to_vector<int64_t>());
}

std::string position_text(const Shape& shape, size_t k) {
  Shape position(shape.size(), 0);
  auto rest = static_cast<int64_t>(k);
  for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) position[d] = rest % shape[d];
  return to_string(position);
}

// Throws for the elements where agree(x, y) is false.
template <class Agree>
void assert_elements(const Array& x, const Array& y, const std::string& expected, Agree agree) {
  CATENA_CHECK(ValueError, x.defined() && y.defined(), "an array is undefined");
  CATENA_CHECK(ValueError, x.shape() == y.shape() || x.ndim() == 0 || y.ndim() == 0, "shapes ",
               x.shape(), " and ", y.shape(), " differ");
  const Shape& shape = x.ndim() == 0 ? y.shape() : x.shape();
  const std::vector<Wide> a = wide_values(x), b = wide_values(y);
  const auto count = static_cast<size_t>(element_count(shape));
  size_t failed = 0, first = 0;
  for (size_t k = 0; k < count; ++k) {
    const Wide v = a[x.ndim() == 0 ? 0 : k], w = b[y.ndim() == 0 ? 0 : k];
    if ((std::isnan(v) && std::isnan(w)) || agree(v, w)) continue;
    if (failed++ == 0) first = k;
  }
  if (failed == 0) return;
  const auto value = [first](const Array& of, const std::vector<Wide>& values) {
    const Wide v = values[of.ndim() == 0 ? 0 : first];
    if (is_float(of.dtype())) return message(static_cast<double>(v));
    return v < 0 ? message(static_cast<int64_t>(v)) : message(static_cast<uint64_t>(v));
  };
  fail<ValueError>(failed, " of ", count, " elements are not ", expected, "; first at ",
                   position_text(shape, first), ": ", value(x, a), " against ", value(y, b));
}

// Of a floating dtype: bits of the significand and the exponent of the smallest normal number.
struct Format {
  int digits, least_exponent;
};
Format format_of(Dtype d) {
  return {row_of(d).mantissa_bits + 1, 2 - (1 << (row_of(d).exponent_bits - 1))};
}
Dtype common_float(const Array& x, const Array& y) {
  CATENA_CHECK(ValueError, x.defined() && y.defined(), "an array is undefined");
  CATENA_CHECK(ValueError, is_float(x.dtype()) && is_float(y.dtype()),
               "expected floating arrays, got ", x.dtype(), " and ", y.dtype());
  return promote(x.dtype(), y.dtype());
}

// The distance from |v| to the next number.
Wide spacing(Wide v, const Format& format) {
  const int exponent =
      v == 0 ? format.least_exponent : std::max(std::ilogb(v), format.least_exponent);
  return std::scalbn(Wide(1), exponent - format.digits + 1);
}

// How many numbers are between 0 and |v|; infinity follows the largest.
uint64_t steps_from_zero(Wide v, const Format& format) {
  if (std::isinf(v)) return uint64_t(2 - 2 * format.least_exponent + 1) << (format.digits - 1);
  const Wide one_spacing = spacing(v, format);
  const int exponent =
      v == 0 ? format.least_exponent : std::max(std::ilogb(v), format.least_exponent);
  return (uint64_t(exponent - format.least_exponent) << (format.digits - 1)) +
         static_cast<uint64_t>(std::abs(v) / one_spacing);
}

}  // namespace

void assert_array_equal(const Array& x, const Array& y) {
  const EntryScope call("assert_array_equal");
  assert_elements(x, y, "equal", [](Wide a, Wide b) { return a == b; });
}

void assert_array_list_equal(std::span<const Array> xs, std::span<const Array> ys) {
  CATENA_CHECK(ValueError, xs.size() == ys.size(), "assert_array_list_equal: ", xs.size(),
               " arrays against ", ys.size());
  for (size_t i = 0; i < xs.size(); ++i) {
    try {
      assert_array_equal(xs[i], ys[i]);
    } catch (const ValueError& e) {
      fail<ValueError>("assert_array_list_equal: arrays ", i, ": ", e.what());
    }
  }
}

void assert_array_almost_equal(const Array& x, const Array& y, int decimal) {
  const EntryScope call("assert_array_almost_equal");
  const Wide limit = 1.5 * std::pow(10.0, -decimal);
  assert_elements(x, y, message("equal to ", decimal, " decimals"),
                  [limit](Wide a, Wide b) { return a == b || std::abs(a - b) < limit; });
}

void assert_arrays_almost_equal_nulp(const Array& x, const Array& y, double nulp) {
  const EntryScope call("assert_arrays_almost_equal_nulp");
  const Format format = format_of(common_float(x, y));
  assert_elements(x, y, message("within ", nulp, " units in the last place"), [&](Wide a, Wide b) {
    if (a == b) return true;
    const Wide larger = std::max(std::abs(a), std::abs(b));
    return !std::isinf(larger) && std::abs(a - b) <= nulp * spacing(larger, format);
  });
}

void assert_array_max_ulp(const Array& x, const Array& y, int64_t maxulp) {
  const EntryScope call("assert_array_max_ulp");
  const Format format = format_of(common_float(x, y));
  CATENA_CHECK(ValueError, maxulp >= 0, "expected maxulp >= 0, got ", maxulp);
  assert_elements(x, y, message("within ", maxulp, " steps"), [&](Wide a, Wide b) {
    if (std::isnan(a) || std::isnan(b)) return false;
    const uint64_t m = steps_from_zero(a, format), n = steps_from_zero(b, format);
    const bool same_side = std::signbit(a) == std::signbit(b);
    return (!same_side ? m + n : m > n ? m - n : n - m) <= static_cast<uint64_t>(maxulp);
  });
}

void assert_array_less(const Array& x, const Array& y) {
  const EntryScope call("assert_array_less");
  assert_elements(x, y, "less", [](Wide a, Wide b) { return a < b; });
}

}  // namespace catena::testing
