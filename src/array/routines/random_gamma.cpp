// The gamma distribution and those derived from it: beta, chi-square, F, Student's t, Dirichlet.
#include <cmath>

#include "array/one_wait.h"
#include "array/routines/random_draws.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/core/entry_scope.h"

namespace catena {

RandomParameter::RandomParameter(const Operand& value, const Shape& shape) {
  if (value.array() == nullptr) {
    number_ = value.scalar().to_double();
    value_ = full({}, *number_, Dtype::kFloat64);
    return;
  }
  const Array& given = *value.array();
  check_defined(given);
  const Shape wide = broadcast_shapes(given.shape(), shape);
  CATENA_CHECK(ShapeError, wide == shape, "parameters of shape ", given.shape(),
               " for numbers of shape ", shape, "; expected them to broadcast to it");
  const Array floats = given.astype(Dtype::kFloat64, false);
  value_ = given.ndim() == 0 ? floats : floats.broadcast_to(shape).ravel();
}

RandomParameter RandomParameter::times(double factor) const {
  RandomParameter result(value_ * factor);
  if (number_) result.number_ = *number_ * factor;
  return result;
}

Array RandomParameter::at(const Array& positions) const {
  if (single() || !positions.defined()) return value_;
  return take(value_, positions, 0, OutOfRange::kWrap);
}

const RandomParameter& RandomParameter::check(const ParameterRange& range) const {
  if (value_.size() == 0) return *this;
  check_extremes(range, number_ ? *number_ : amin(value_).item<double>(),
                 number_ ? *number_ : amax(value_).item<double>());
  return *this;
}

Array still_open(const Array& open, const Array& condition) {
  const Array chosen = flatnonzero(condition);
  return open.defined() ? take(open, chosen, 0, OutOfRange::kWrap) : chosen;
}
void store_round(const Array& result, const Array& open, const Array& values) {
  if (open.defined())
    put(result, open, values, OutOfRange::kWrap);
  else
    result.assign(values);
}

namespace {

// Marsaglia & Tsang, "A simple method for generating gamma variables", 2000, for k of at least 1: d
// (1 + c z)^3 with a normal z is accepted in more than 95 of 100 cases. Each round draws for the
// elements that have no number yet.
Array gamma_of_at_least_one(RandomState& state, const RandomParameter& k, int64_t count) {
  const RandomParameter d(k.value() - 1.0 / 3), c(rsqrt(d.value() * 9));
  const Array result = empty({count}, Dtype::kFloat64);
  Array open;
  for (int64_t left = count; left > 0; left = open.size()) {
    const Array here = d.at(open), z = state.normal({left}, 0, 1, Dtype::kFloat64);
    const Array u = above_zero(state, {left}, Dtype::kFloat64);
    const Array root = c.at(open) * z + 1, v = root * root * root;
    // A negative v has no logarithm and is rejected.
    const Array taken = log(u) < z * z * 0.5 + here * (1 - v + log(v));
    store_round(result, open, here * v);
    open = still_open(open, logical_not(taken));
  }
  return result;
}

}  // namespace

GammaDraw draw_gamma(RandomState& state, const RandomParameter& k, int64_t count) {
  const bool boosted = !k.number() || *k.number() < 1;
  if (!boosted) return {gamma_of_at_least_one(state, k, count), {}};
  // A number for k + 1 times u^(1/k) is distributed as one for k.
  const Array low = k.value() < 1;
  const RandomParameter raised(where(low, k.value() + 1, k.value()));
  const Array factor = gamma_of_at_least_one(state, raised, count);
  const Array boost = log(inside_unit(state, {count})) / k.value();
  return {factor, where(low, boost, 0.0)};
}

namespace {

constexpr double kLargest = 1e300;  // of parameters: keeps products finite

GammaDraw checked_gamma(RandomState& state, const char* what, const Operand& parameter,
                        const Shape& shape, double times = 1) {
  const RandomParameter given(parameter, shape);
  refuse_capture(given.value());
  given.check({what, 0, false, kLargest});
  return draw_gamma(state, given.times(times), element_count(shape));
}

}  // namespace

Array RandomState::gamma(const DrawShape& given, const Operand& k, const Operand& scale,
                         const ArrayOptions& options) {
  const EntryScope call("gamma");
  const FloatDraw draw(given, {k, scale}, options);
  const Shape& shape = draw.shape();
  const RandomParameter times(scale, shape), of(k, shape);
  refuse_capture(of.value());
  times.check({"scales of at least 0", 0, true, kLargest});
  of.check({"shape parameters of at least 0", 0, true, kLargest});
  const GammaDraw drawn = draw_gamma(*this, of, element_count(shape));
  return draw.finish(drawn.number() * times.value());
}

Array RandomState::standard_gamma(const DrawShape& shape, const Operand& k,
                                  const ArrayOptions& options) {
  const EntryScope call("standard_gamma");
  return gamma(shape, k, 1, options);
}

Array RandomState::beta(const DrawShape& given, const Operand& a, const Operand& b,
                        const ArrayOptions& options) {
  const EntryScope call("beta");
  const FloatDraw draw(given, {a, b}, options);
  const Shape& shape = draw.shape();
  const GammaDraw x = checked_gamma(*this, "a above 0", a, shape),
                  y = checked_gamma(*this, "b above 0", b, shape);
  // x / (x + y), also where both are too small for a double.
  return draw.finish(sigmoid(x.logarithm() - y.logarithm()));
}

Array RandomState::chisquare(const DrawShape& given, const Operand& df,
                             const ArrayOptions& options) {
  const EntryScope call("chisquare");
  const FloatDraw draw(given, {df}, options);
  const Shape& shape = draw.shape();
  const char* what = "degrees of freedom above 0";
  return draw.finish(checked_gamma(*this, what, df, shape, 0.5).number() * 2);
}

Array RandomState::f(const DrawShape& given, const Operand& dfnum, const Operand& dfden,
                     const ArrayOptions& options) {
  const EntryScope call("f");
  const FloatDraw draw(given, {dfnum, dfden}, options);
  const Shape& shape = draw.shape();
  const char* what = "degrees of freedom above 0";
  const GammaDraw above = checked_gamma(*this, what, dfnum, shape, 0.5),
                  below = checked_gamma(*this, what, dfden, shape, 0.5);
  const Array ratio = RandomParameter(dfden, shape).value() / RandomParameter(dfnum, shape).value();
  // Both may be too small for a double.
  return draw.finish(exp(above.logarithm() - below.logarithm()) * ratio);
}

Array RandomState::standard_t(const DrawShape& given, const Operand& df,
                              const ArrayOptions& options) {
  const EntryScope call("standard_t");
  const FloatDraw draw(given, {df}, options);
  const Shape& shape = draw.shape();
  const Array z = normal({element_count(shape)}, 0, 1, Dtype::kFloat64);
  const GammaDraw g = checked_gamma(*this, "degrees of freedom above 0", df, shape, 0.5);
  const Array half = RandomParameter(df, shape).value() * 0.5;
  return draw.finish(z * sqrt(half / g.number()));
}

Array RandomState::dirichlet(const Shape& shape, const Array& alpha, const ArrayOptions& options) {
  const EntryScope call("dirichlet");
  const Dtype dtype = options.dtype.value_or(default_float());
  working_dtype(dtype);
  const DeviceScope scope(device_of({alpha}, options.device));
  CATENA_CHECK(ShapeError, alpha.ndim() == 1 && alpha.size() > 0,
               "expected a 1-d array of at least one alpha, got shape ", alpha.shape());
  Shape wide = shape;
  wide.push_back(alpha.size());
  const Array logs = checked_gamma(*this, "alphas above 0", alpha, wide).logarithm().reshape(wide);
  const ReduceAxes rows(-1, true);
  const Array parts = exp(logs - amax(logs, rows));
  return (parts / sum(parts, rows)).astype(dtype, false);
}

}  // namespace catena
