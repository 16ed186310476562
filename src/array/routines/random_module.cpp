// The distributions of namespace random, which use the default generators.
#include "array/routines/random_draws.h"
#include "catena/core/entry_scope.h"

namespace catena::random {

Array standard_cauchy(const Shape& shape, const ArrayOptions& options) {
  return default_state(options.device_or_current()).standard_cauchy(shape, options);
}
Array uniform(const DrawShape& shape, const Operand& low, const Operand& high,
              const ArrayOptions& options) {
  const EntryScope call("uniform");
  return default_state(device_of({low, high}, options.device)).uniform(shape, low, high, options);
}
Array normal(const DrawShape& shape, const Operand& mean, const Operand& deviation,
             const ArrayOptions& options) {
  const EntryScope call("normal");
  return default_state(device_of({mean, deviation}, options.device))
      .normal(shape, mean, deviation, options);
}
Array lognormal(const DrawShape& shape, const Operand& mean, const Operand& sigma,
                const ArrayOptions& options) {
  const EntryScope call("lognormal");
  return default_state(device_of({mean, sigma}, options.device))
      .lognormal(shape, mean, sigma, options);
}
Array exponential(const DrawShape& shape, const Operand& scale, const ArrayOptions& options) {
  const EntryScope call("exponential");
  return default_state(device_of({scale}, options.device)).exponential(shape, scale, options);
}
Array gumbel(const DrawShape& shape, const Operand& location, const Operand& scale,
             const ArrayOptions& options) {
  const EntryScope call("gumbel");
  return default_state(device_of({location, scale}, options.device))
      .gumbel(shape, location, scale, options);
}
Array laplace(const DrawShape& shape, const Operand& location, const Operand& scale,
              const ArrayOptions& options) {
  const EntryScope call("laplace");
  return default_state(device_of({location, scale}, options.device))
      .laplace(shape, location, scale, options);
}
Array logistic(const DrawShape& shape, const Operand& location, const Operand& scale,
               const ArrayOptions& options) {
  const EntryScope call("logistic");
  return default_state(device_of({location, scale}, options.device))
      .logistic(shape, location, scale, options);
}
Array rayleigh(const DrawShape& shape, const Operand& scale, const ArrayOptions& options) {
  const EntryScope call("rayleigh");
  return default_state(device_of({scale}, options.device)).rayleigh(shape, scale, options);
}
Array weibull(const DrawShape& shape, const Operand& a, const ArrayOptions& options) {
  const EntryScope call("weibull");
  return default_state(device_of({a}, options.device)).weibull(shape, a, options);
}
Array pareto(const DrawShape& shape, const Operand& a, const ArrayOptions& options) {
  const EntryScope call("pareto");
  return default_state(device_of({a}, options.device)).pareto(shape, a, options);
}
Array power(const DrawShape& shape, const Operand& a, const ArrayOptions& options) {
  const EntryScope call("power");
  return default_state(device_of({a}, options.device)).power(shape, a, options);
}
Array triangular(const DrawShape& shape, const Operand& left, const Operand& mode,
                 const Operand& right, const ArrayOptions& options) {
  const EntryScope call("triangular");
  return default_state(device_of({left, mode, right}, options.device))
      .triangular(shape, left, mode, right, options);
}
Array gamma(const DrawShape& shape, const Operand& k, const Operand& scale,
            const ArrayOptions& options) {
  const EntryScope call("gamma");
  return default_state(device_of({k, scale}, options.device)).gamma(shape, k, scale, options);
}
Array standard_gamma(const DrawShape& shape, const Operand& k, const ArrayOptions& options) {
  const EntryScope call("standard_gamma");
  return default_state(device_of({k}, options.device)).standard_gamma(shape, k, options);
}
Array beta(const DrawShape& shape, const Operand& a, const Operand& b,
           const ArrayOptions& options) {
  const EntryScope call("beta");
  return default_state(device_of({a, b}, options.device)).beta(shape, a, b, options);
}
Array chisquare(const DrawShape& shape, const Operand& df, const ArrayOptions& options) {
  const EntryScope call("chisquare");
  return default_state(device_of({df}, options.device)).chisquare(shape, df, options);
}
Array f(const DrawShape& shape, const Operand& dfnum, const Operand& dfden,
        const ArrayOptions& options) {
  const EntryScope call("f");
  return default_state(device_of({dfnum, dfden}, options.device)).f(shape, dfnum, dfden, options);
}
Array standard_t(const DrawShape& shape, const Operand& df, const ArrayOptions& options) {
  const EntryScope call("standard_t");
  return default_state(device_of({df}, options.device)).standard_t(shape, df, options);
}
Array dirichlet(const Shape& shape, const Array& alpha, const ArrayOptions& options) {
  const EntryScope call("dirichlet");
  return default_state(device_of({alpha}, options.device)).dirichlet(shape, alpha, options);
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
