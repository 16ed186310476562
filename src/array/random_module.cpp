// The distributions of namespace random: those of the default generators.
#include "array/random_draws.h"

namespace catena::random {

Array standard_cauchy(const Shape& shape, FloatDtype dtype) {
  return default_state().standard_cauchy(shape, dtype);
}
Array uniform(const DrawShape& shape, const Operand& low, const Operand& high, FloatDtype dtype) {
  return default_state(device_of("uniform", {low, high})).uniform(shape, low, high, dtype);
}
Array normal(const DrawShape& shape, const Operand& mean, const Operand& deviation,
             FloatDtype dtype) {
  return default_state(device_of("normal", {mean, deviation}))
      .normal(shape, mean, deviation, dtype);
}
Array lognormal(const DrawShape& shape, const Operand& mean, const Operand& sigma,
                FloatDtype dtype) {
  return default_state(device_of("lognormal", {mean, sigma})).lognormal(shape, mean, sigma, dtype);
}
Array exponential(const DrawShape& shape, const Operand& scale, FloatDtype dtype) {
  return default_state(device_of("exponential", {scale})).exponential(shape, scale, dtype);
}
Array gumbel(const DrawShape& shape, const Operand& location, const Operand& scale,
             FloatDtype dtype) {
  return default_state(device_of("gumbel", {location, scale}))
      .gumbel(shape, location, scale, dtype);
}
Array laplace(const DrawShape& shape, const Operand& location, const Operand& scale,
              FloatDtype dtype) {
  return default_state(device_of("laplace", {location, scale}))
      .laplace(shape, location, scale, dtype);
}
Array logistic(const DrawShape& shape, const Operand& location, const Operand& scale,
               FloatDtype dtype) {
  return default_state(device_of("logistic", {location, scale}))
      .logistic(shape, location, scale, dtype);
}
Array rayleigh(const DrawShape& shape, const Operand& scale, FloatDtype dtype) {
  return default_state(device_of("rayleigh", {scale})).rayleigh(shape, scale, dtype);
}
Array weibull(const DrawShape& shape, const Operand& a, FloatDtype dtype) {
  return default_state(device_of("weibull", {a})).weibull(shape, a, dtype);
}
Array pareto(const DrawShape& shape, const Operand& a, FloatDtype dtype) {
  return default_state(device_of("pareto", {a})).pareto(shape, a, dtype);
}
Array power(const DrawShape& shape, const Operand& a, FloatDtype dtype) {
  return default_state(device_of("power", {a})).power(shape, a, dtype);
}
Array triangular(const DrawShape& shape, const Operand& left, const Operand& mode,
                 const Operand& right, FloatDtype dtype) {
  return default_state(device_of("triangular", {left, mode, right}))
      .triangular(shape, left, mode, right, dtype);
}
Array gamma(const DrawShape& shape, const Operand& k, const Operand& scale, FloatDtype dtype) {
  return default_state(device_of("gamma", {k, scale})).gamma(shape, k, scale, dtype);
}
Array standard_gamma(const DrawShape& shape, const Operand& k, FloatDtype dtype) {
  return default_state(device_of("standard_gamma", {k})).standard_gamma(shape, k, dtype);
}
Array beta(const DrawShape& shape, const Operand& a, const Operand& b, FloatDtype dtype) {
  return default_state(device_of("beta", {a, b})).beta(shape, a, b, dtype);
}
Array chisquare(const DrawShape& shape, const Operand& df, FloatDtype dtype) {
  return default_state(device_of("chisquare", {df})).chisquare(shape, df, dtype);
}
Array f(const DrawShape& shape, const Operand& dfnum, const Operand& dfden, FloatDtype dtype) {
  return default_state(device_of("f", {dfnum, dfden})).f(shape, dfnum, dfden, dtype);
}
Array standard_t(const DrawShape& shape, const Operand& df, FloatDtype dtype) {
  return default_state(device_of("standard_t", {df})).standard_t(shape, df, dtype);
}
Array dirichlet(const Shape& shape, const Array& alpha, FloatDtype dtype) {
  return default_state(device_of("dirichlet", {alpha})).dirichlet(shape, alpha, dtype);
}
Array negative_binomial(const DrawShape& shape, const Operand& n, const Operand& p) {
  return default_state(device_of("negative_binomial", {n, p})).negative_binomial(shape, n, p);
}
Array poisson(const DrawShape& shape, const Operand& lam) {
  return default_state(device_of("poisson", {lam})).poisson(shape, lam);
}
Array binomial(const Shape& shape, int64_t n, double p) {
  return default_state().binomial(shape, n, p);
}
Array geometric(const DrawShape& shape, const Operand& p) {
  return default_state(device_of("geometric", {p})).geometric(shape, p);
}
Array multinomial(const Shape& shape, int64_t n, const Array& p) {
  return default_state(device_of("multinomial", {p})).multinomial(shape, n, p);
}

}  // namespace catena::random
