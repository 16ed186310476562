// Continuous distributions that transform a standard one: location and scale, exponents.
#include <cmath>

#include "array/routines/random_draws.h"
#include "catena/array/creation.h"
#include "catena/array/float_parts.h"
#include "catena/array/indexing.h"
#include "catena/array/reduction.h"
#include "catena/core/call_scope.h"
#include "catena/core/entry_scope.h"
#include "catena/core/graph.h"

namespace catena {

// ---- parameters ---------------------------------------------------------------------------------

Device device_of(std::initializer_list<Operand> operands, const std::optional<Device>& asked) {
  const Array* first = nullptr;
  for (const Operand& x : operands) {
    if (x.array() == nullptr) continue;
    check_defined(*x.array());
    if (first == nullptr)
      first = x.array();
    else
      check_same_device(*first, *x.array());
  }
  if (first == nullptr) return asked ? *asked : current_device();
  CATENA_CHECK(DeviceError, !asked || *asked == first->device(), "the options name ", *asked,
               ", but the parameters are on ", first->device(),
               "; move them with to() or leave the device out");
  return first->device();
}

Shape shape_of_draw(const DrawShape& given, std::initializer_list<Operand> parameters) {
  Shape shape = given.shape();
  for (const Operand& p : parameters) {
    if (p.array() == nullptr) continue;
    check_defined(*p.array());
    const Shape wide = broadcast_shapes(p.array()->shape(), shape);
    CATENA_CHECK(ShapeError, given.of_parameters() || wide == shape, "parameters of shape ",
                 p.array()->shape(), " for numbers of shape ", shape,
                 "; expected them to broadcast to it");
    shape = wide;
  }
  return shape;
}

void check_extremes(const ParameterRange& range, double least, double most) {
  const auto bad = [&](double v) {
    return !(range.or_equal ? v >= range.low : v > range.low) || !(v <= range.high);
  };
  CATENA_CHECK(ValueError, !bad(least) && !bad(most), "expected ", range.what, ", got ",
               bad(least) ? least : most);
}

Array DrawParameter::array(Dtype dtype) const {
  return is_array() ? array_ : full({}, number_, dtype);
}

const DrawParameter& DrawParameter::check(const ParameterRange& range) const {
  if (!is_array()) {
    check_extremes(range, number_, number_);
  } else if (array_.size() > 0 && !cuda::is_capturing(array_.device())) {
    check_extremes(range, amin(array_).item<double>(), amax(array_).item<double>());
  }
  return *this;
}

namespace {

constexpr ParameterRange kDeviations{"deviations of at least 0", 0, true, HUGE_VAL};
constexpr ParameterRange kScales{"scales of at least 0", 0, true, HUGE_VAL};
constexpr ParameterRange kExponents{"exponents above 0", 0, false, HUGE_VAL};

// A scale in float64, in which most distributions are computed.
DrawParameter scale_of(const Operand& scale) {
  return DrawParameter(scale, Dtype::kFloat64).check(kScales);
}
DrawParameter exponent_of(const Operand& a) {
  return DrawParameter(a, Dtype::kFloat64).check(kExponents);
}

Array moved(const DrawParameter& location, const DrawParameter& scale, const Array& numbers,
            Dtype dtype) {
  return add(location, multiply(scale, numbers)).astype(dtype, false);
}

// Replaces numbers that rounding carried to `limit` by those next to it on the side of `first`.
Array kept_off(const Array& numbers, const Array& first, const Array& limit) {
  const Array bound = catena::nextafter(limit, first);
  return where(first < limit, minimum(numbers, bound),
               where(first > limit, maximum(numbers, bound), numbers));
}

// Throws ValueError with the first elements of triangular's parameters that are not in ascending
// order.
void check_ascending(const Array& left, const Array& mode, const Array& right) {
  const Array wrong =
      logical_not(logical_and(logical_and(left <= mode, mode <= right), left < right));
  if (wrong.size() == 0 || !any(wrong).item<bool>()) return;
  const int64_t at = argmax(wrong.ravel()).item<int64_t>();
  const auto value = [&](const Array& a) {
    return a.broadcast_to(wrong.shape()).ravel()[at].item<double>();
  };
  fail<ValueError>("expected left <= mode <= right and left < right, got ", value(left), ", ",
                   value(mode), ", ", value(right), " in element ", at);
}

// P is double, or Array in any combination of shapes.
template <class P>
Array triangular_numbers(const Array& u, const P& left, const P& mode, const P& right) {
  const P width = right - left, split = (mode - left) / width;
  const Array rising = left + sqrt(u * (width * (mode - left))),
              falling = right - sqrt((1 - u) * (width * (right - mode)));
  return where(u <= split, rising, falling);
}

}  // namespace

// ---- distributions ------------------------------------------------------------------------------

Array RandomState::uniform(const DrawShape& given, const Operand& low, const Operand& high,
                           const ArrayOptions& options) {
  const EntryScope call("uniform");
  const FloatDraw draw(given, {low, high}, options);
  const DrawParameter from(low, draw.working()), to(high, draw.working());
  if (!from.is_array() && !to.is_array())
    return uniform(draw.shape(), from.number(), to.number(), draw.dtype());
  const Array first = from.array(draw.working()), limit = to.array(draw.working());
  const Array numbers = first + uniform(draw.shape(), 0, 1, draw.working()) * (limit - first);
  return kept_off(numbers.astype(draw.dtype(), false), first.astype(draw.dtype(), false),
                  limit.astype(draw.dtype(), false));
}

Array RandomState::normal(const DrawShape& given, const Operand& mean, const Operand& deviation,
                          const ArrayOptions& options) {
  const EntryScope call("normal");
  const FloatDraw draw(given, {mean, deviation}, options);
  const DrawParameter location(mean, draw.working()), scale(deviation, draw.working());
  scale.check(kDeviations);
  if (!location.is_array() && !scale.is_array())
    return normal(draw.shape(), location.number(), scale.number(), draw.dtype());
  return moved(location, scale, normal(draw.shape(), 0, 1, draw.working()), draw.dtype());
}

Array RandomState::lognormal(const DrawShape& given, const Operand& mean, const Operand& sigma,
                             const ArrayOptions& options) {
  const EntryScope call("lognormal");
  const Dtype dtype = options.dtype.value_or(default_float());
  const Dtype working = working_dtype(dtype);
  return exp(normal(given, mean, sigma, {working, options.device})).astype(dtype, false);
}

Array RandomState::exponential(const DrawShape& given, const Operand& scale,
                               const ArrayOptions& options) {
  const EntryScope call("exponential");
  const FloatDraw draw(given, {scale}, options);
  const DrawParameter times(scale, draw.working());
  times.check(kScales);
  const Array numbers = log(above_zero(*this, draw.shape(), draw.working()));
  return multiply(numbers, times.map([](const auto& x) { return -x; })).astype(draw.dtype(), false);
}

Array RandomState::gumbel(const DrawShape& given, const Operand& location, const Operand& scale,
                          const ArrayOptions& options) {
  const EntryScope call("gumbel");
  const FloatDraw draw(given, {location, scale}, options);
  const DrawParameter at(location, Dtype::kFloat64), times = scale_of(scale);
  const Array numbers = log(-log(inside_unit(*this, draw.shape())));
  return subtract(at, multiply(times, numbers)).astype(draw.dtype(), false);
}

Array RandomState::laplace(const DrawShape& given, const Operand& location, const Operand& scale,
                           const ArrayOptions& options) {
  const EntryScope call("laplace");
  const FloatDraw draw(given, {location, scale}, options);
  const DrawParameter at(location, Dtype::kFloat64), times = scale_of(scale);
  const Array u = inside_unit(*this, draw.shape());
  const Array below = log(u * 2), above = -log((1 - u) * 2);
  return moved(at, times, where(u < 0.5, below, above), draw.dtype());
}

Array RandomState::logistic(const DrawShape& given, const Operand& location, const Operand& scale,
                            const ArrayOptions& options) {
  const EntryScope call("logistic");
  const FloatDraw draw(given, {location, scale}, options);
  const DrawParameter at(location, Dtype::kFloat64), times = scale_of(scale);
  const Array u = inside_unit(*this, draw.shape());
  return moved(at, times, log(u) - log(1 - u), draw.dtype());
}

Array RandomState::rayleigh(const DrawShape& given, const Operand& scale,
                            const ArrayOptions& options) {
  const EntryScope call("rayleigh");
  const FloatDraw draw(given, {scale}, options);
  const DrawParameter times = scale_of(scale);
  return multiply(times, sqrt(-2 * log(inside_unit(*this, draw.shape()))))
      .astype(draw.dtype(), false);
}

Array RandomState::weibull(const DrawShape& given, const Operand& a, const ArrayOptions& options) {
  const EntryScope call("weibull");
  const FloatDraw draw(given, {a}, options);
  const DrawParameter root = exponent_of(a).map([](const auto& x) { return 1 / x; });
  return catena::power(-log(inside_unit(*this, draw.shape())), root).astype(draw.dtype(), false);
}

Array RandomState::pareto(const DrawShape& given, const Operand& a, const ArrayOptions& options) {
  const EntryScope call("pareto");
  const FloatDraw draw(given, {a}, options);
  const DrawParameter root = exponent_of(a).map([](const auto& x) { return -1 / x; });
  return expm1(multiply(log(inside_unit(*this, draw.shape())), root)).astype(draw.dtype(), false);
}

Array RandomState::power(const DrawShape& given, const Operand& a, const ArrayOptions& options) {
  const EntryScope call("power");
  const FloatDraw draw(given, {a}, options);
  const DrawParameter root = exponent_of(a).map([](const auto& x) { return 1 / x; });
  return catena::power(inside_unit(*this, draw.shape()), root).astype(draw.dtype(), false);
}

Array RandomState::standard_cauchy(const Shape& shape, const ArrayOptions& options) {
  const EntryScope call("standard_cauchy");
  const Dtype dtype = options.dtype.value_or(default_float());
  working_dtype(dtype);
  const DeviceScope scope(options.device_or_current());
  return tan((inside_unit(*this, shape) - 0.5) * M_PI).astype(dtype, false);
}

Array RandomState::triangular(const DrawShape& given, const Operand& left, const Operand& mode,
                              const Operand& right, const ArrayOptions& options) {
  const EntryScope call("triangular");
  constexpr Dtype kWorking = Dtype::kFloat64;
  const FloatDraw draw(given, {left, mode, right}, options);
  const DrawParameter from(left, kWorking), peak(mode, kWorking), to(right, kWorking);
  if (!from.is_array() && !peak.is_array() && !to.is_array()) {
    const double a = from.number(), b = peak.number(), c = to.number();
    CATENA_CHECK(ValueError, a <= b && b <= c && a < c,
                 "expected left <= mode <= right and left < right, got ", a, ", ", b, ", ", c);
    return triangular_numbers(inside_unit(*this, draw.shape()), a, b, c)
        .astype(draw.dtype(), false);
  }
  const Array a = from.array(kWorking), b = peak.array(kWorking), c = to.array(kWorking);
  if (!cuda::is_capturing(a.device())) check_ascending(a, b, c);
  return triangular_numbers(inside_unit(*this, draw.shape()), a, b, c).astype(draw.dtype(), false);
}

}  // namespace catena
