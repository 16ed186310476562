// The distributions of namespace random: those of the default generators.
#include "array/random_draws.h"
#include "catena/core/entry_scope.h"

namespace catena::random {

Array standard_cauchy(const Shape& shape, FloatDtype dtype) {
  return default_state().standard_cauchy(shape, dtype);
}
Array uniform(const DrawShape& shape, const Operand& low, const Operand& high, FloatDtype dtype) {
  const EntryScope call("uniform");
  return default_state(device_of({low, high})).uniform(shape, low, high, dtype);
}
Array normal(const DrawShape& shape, const Operand& mean, const Operand& deviation,
             FloatDtype dtype) {
  const EntryScope call("normal");
  return default_state(device_of({mean, deviation})).normal(shape, mean, deviation, dtype);
}
Array lognormal(const DrawShape& shape, const Operand& mean, const Operand& sigma,
                FloatDtype dtype) {
  const EntryScope call("lognormal");
  return default_state(device_of({mean, sigma})).lognormal(shape, mean, sigma, dtype);
}
Array exponential(const DrawShape& shape, const Operand& scale, FloatDtype dtype) {
  const EntryScope call("exponential");
  return default_state(device_of({scale})).exponential(shape, scale, dtype);
}
Array gumbel(const DrawShape& shape, const Operand& location, const Operand& scale,
             FloatDtype dtype) {
  const EntryScope call("gumbel");
  return default_state(device_of({location, scale})).gumbel(shape, location, scale, dtype);
}
Array laplace(const DrawShape& shape, const Operand& location, const Operand& scale,
              FloatDtype dtype) {
  const EntryScope call("laplace");
  return default_state(device_of({location, scale})).laplace(shape, location, scale, dtype);
}
Array logistic(const DrawShape& shape, const Operand& location, const Operand& scale,
               FloatDtype dtype) {
  const EntryScope call("logistic");
  return default_state(device_of({location, scale})).logistic(shape, location, scale, dtype);
}
Array rayleigh(const DrawShape& shape, const Operand& scale, FloatDtype dtype) {
  const EntryScope call("rayleigh");
  return default_state(device_of({scale})).rayleigh(shape, scale, dtype);
}
Array weibull(const DrawShape& shape, const Operand& a, FloatDtype dtype) {
  const EntryScope call("weibull");
  return default_state(device_of({a})).weibull(shape, a, dtype);
}
Array pareto(const DrawShape& shape, const Operand& a, FloatDtype dtype) {
  const EntryScope call("pareto");
  return default_state(device_of({a})).pareto(shape, a, dtype);
}
Array power(const DrawShape& shape, const Operand& a, FloatDtype dtype) {
  const EntryScope call("power");
  return default_state(device_of({a})).power(shape, a, dtype);
}
Array triangular(const DrawShape& shape, const Operand& left, const Operand& mode,
                 const Operand& right, FloatDtype dtype) {
  const EntryScope call("triangular");
  return default_state(device_of({left, mode, right})).triangular(shape, left, mode, right, dtype);
}
Array gamma(const DrawShape& shape, const Operand& k, const Operand& scale, FloatDtype dtype) {
  const EntryScope call("gamma");
  return default_state(device_of({k, scale})).gamma(shape, k, scale, dtype);
}
Array standard_gamma(const DrawShape& shape, const Operand& k, FloatDtype dtype) {
  const EntryScope call("standard_gamma");
  return default_state(device_of({k})).standard_gamma(shape, k, dtype);
}
Array beta(const DrawShape& shape, const Operand& a, const Operand& b, FloatDtype dtype) {
  const EntryScope call("beta");
  return default_state(device_of({a, b})).beta(shape, a, b, dtype);
}
Array chisquare(const DrawShape& shape, const Operand& df, FloatDtype dtype) {
  const EntryScope call("chisquare");
  return default_state(device_of({df})).chisquare(shape, df, dtype);
}
Array f(const DrawShape& shape, const Operand& dfnum, const Operand& dfden, FloatDtype dtype) {
  const EntryScope call("f");
  return default_state(device_of({dfnum, dfden})).f(shape, dfnum, dfden, dtype);
}
Array standard_t(const DrawShape& shape, const Operand& df, FloatDtype dtype) {
  const EntryScope call("standard_t");
  return default_state(device_of({df})).standard_t(shape, df, dtype);
}
Array dirichlet(const Shape& shape, const Array& alpha, FloatDtype dtype) {
  const EntryScope call("dirichlet");
  return default_state(device_of({alpha})).dirichlet(shape, alpha, dtype);
}
Array negative_binomial(const DrawShape& shape, const Operand& n, const Operand& p) {
  const EntryScope call("negative_binomial");
  return default_state(device_of({n, p})).negative_binomial(shape, n, p);
}
Array poisson(const DrawShape& shape, const Operand& lam) {
  const EntryScope call("poisson");
  return default_state(device_of({lam})).poisson(shape, lam);
}
Array binomial(const Shape& shape, int64_t n, double p) {
  return default_state().binomial(shape, n, p);
}
Array geometric(const DrawShape& shape, const Operand& p) {
  const EntryScope call("geometric");
  return default_state(device_of({p})).geometric(shape, p);
}
Array multinomial(const Shape& shape, int64_t n, const Array& p) {
  const EntryScope call("multinomial");
  return default_state(device_of({p})).multinomial(shape, n, p);
}

}  // namespace catena::random
