// The distributions of namespace random: those of the default generators.
#include "array/random_draws.h"

namespace catena::random {

Array rayleigh(const Shape& shape, double scale, Dtype dtype) {
  return default_state().rayleigh(shape, scale, dtype);
}
Array weibull(const Shape& shape, double a, Dtype dtype) {
  return default_state().weibull(shape, a, dtype);
}
Array pareto(const Shape& shape, double a, Dtype dtype) {
  return default_state().pareto(shape, a, dtype);
}
Array power(const Shape& shape, double a, Dtype dtype) {
  return default_state().power(shape, a, dtype);
}
Array standard_cauchy(const Shape& shape, Dtype dtype) {
  return default_state().standard_cauchy(shape, dtype);
}
Array triangular(const Shape& shape, double left, double mode, double right, Dtype dtype) {
  return default_state().triangular(shape, left, mode, right, dtype);
}
Array gamma(const Shape& shape, const Operand& k, const Operand& scale, Dtype dtype) {
  return default_state(device_of("gamma", {k, scale})).gamma(shape, k, scale, dtype);
}
Array standard_gamma(const Shape& shape, const Operand& k, Dtype dtype) {
  return default_state(device_of("standard_gamma", {k})).standard_gamma(shape, k, dtype);
}
Array beta(const Shape& shape, const Operand& a, const Operand& b, Dtype dtype) {
  return default_state(device_of("beta", {a, b})).beta(shape, a, b, dtype);
}
Array chisquare(const Shape& shape, const Operand& df, Dtype dtype) {
  return default_state(device_of("chisquare", {df})).chisquare(shape, df, dtype);
}
Array f(const Shape& shape, const Operand& dfnum, const Operand& dfden, Dtype dtype) {
  return default_state(device_of("f", {dfnum, dfden})).f(shape, dfnum, dfden, dtype);
}
Array standard_t(const Shape& shape, const Operand& df, Dtype dtype) {
  return default_state(device_of("standard_t", {df})).standard_t(shape, df, dtype);
}
Array dirichlet(const Shape& shape, const Array& alpha, Dtype dtype) {
  return default_state(device_of("dirichlet", {alpha})).dirichlet(shape, alpha, dtype);
}
Array negative_binomial(const Shape& shape, const Operand& n, const Operand& p) {
  return default_state(device_of("negative_binomial", {n, p})).negative_binomial(shape, n, p);
}
Array poisson(const Shape& shape, const Operand& lam) {
  return default_state(device_of("poisson", {lam})).poisson(shape, lam);
}
Array binomial(const Shape& shape, int64_t n, double p) {
  return default_state().binomial(shape, n, p);
}
Array geometric(const Shape& shape, const Operand& p) {
  return default_state(device_of("geometric", {p})).geometric(shape, p);
}
Array multinomial(const Shape& shape, int64_t n, const Array& p) {
  return default_state(device_of("multinomial", {p})).multinomial(shape, n, p);
}

}  // namespace catena::random
