// The distributions of namespace random, which use the default generators.
#include "array/routines/random_draws.h"
#include "catena/core/entry_scope.h"

namespace catena::random {
namespace {

// The generator of the operands' device; errors name the function.
RandomState& generator(const char* name, std::initializer_list<Operand> operands,
                       std::optional<Device> device) {
  const EntryScope call(name);
  return default_state(device_of(operands, device));
}

}  // namespace

Array standard_cauchy(const Shape& shape, const ArrayOptions& options) {
  return default_state(options.device_or_current()).standard_cauchy(shape, options);
}
Array uniform(const DrawShape& shape, const Operand& low, const Operand& high,
              const ArrayOptions& options) {
  return generator("uniform", {low, high}, options.device).uniform(shape, low, high, options);
}
Array normal(const DrawShape& shape, const Operand& mean, const Operand& deviation,
             const ArrayOptions& options) {
  return generator("normal", {mean, deviation}, options.device)
      .normal(shape, mean, deviation, options);
}
Array lognormal(const DrawShape& shape, const Operand& mean, const Operand& sigma,
                const ArrayOptions& options) {
  return generator("lognormal", {mean, sigma}, options.device)
      .lognormal(shape, mean, sigma, options);
}
Array exponential(const DrawShape& shape, const Operand& scale, const ArrayOptions& options) {
  return generator("exponential", {scale}, options.device).exponential(shape, scale, options);
}
Array gumbel(const DrawShape& shape, const Operand& location, const Operand& scale,
             const ArrayOptions& options) {
  return generator("gumbel", {location, scale}, options.device)
      .gumbel(shape, location, scale, options);
}
Array laplace(const DrawShape& shape, const Operand& location, const Operand& scale,
              const ArrayOptions& options) {
  return generator("laplace", {location, scale}, options.device)
      .laplace(shape, location, scale, options);
}
Array logistic(const DrawShape& shape, const Operand& location, const Operand& scale,
               const ArrayOptions& options) {
  return generator("logistic", {location, scale}, options.device)
      .logistic(shape, location, scale, options);
}
Array rayleigh(const DrawShape& shape, const Operand& scale, const ArrayOptions& options) {
  return generator("rayleigh", {scale}, options.device).rayleigh(shape, scale, options);
}
Array weibull(const DrawShape& shape, const Operand& a, const ArrayOptions& options) {
  return generator("weibull", {a}, options.device).weibull(shape, a, options);
}
Array pareto(const DrawShape& shape, const Operand& a, const ArrayOptions& options) {
  return generator("pareto", {a}, options.device).pareto(shape, a, options);
}
Array power(const DrawShape& shape, const Operand& a, const ArrayOptions& options) {
  return generator("power", {a}, options.device).power(shape, a, options);
}
Array triangular(const DrawShape& shape, const Operand& left, const Operand& mode,
                 const Operand& right, const ArrayOptions& options) {
  return generator("triangular", {left, mode, right}, options.device)
      .triangular(shape, left, mode, right, options);
}
Array gamma(const DrawShape& shape, const Operand& k, const Operand& scale,
            const ArrayOptions& options) {
  return generator("gamma", {k, scale}, options.device).gamma(shape, k, scale, options);
}
Array standard_gamma(const DrawShape& shape, const Operand& k, const ArrayOptions& options) {
  return generator("standard_gamma", {k}, options.device).standard_gamma(shape, k, options);
}
Array beta(const DrawShape& shape, const Operand& a, const Operand& b,
           const ArrayOptions& options) {
  return generator("beta", {a, b}, options.device).beta(shape, a, b, options);
}
Array chisquare(const DrawShape& shape, const Operand& df, const ArrayOptions& options) {
  return generator("chisquare", {df}, options.device).chisquare(shape, df, options);
}
Array f(const DrawShape& shape, const Operand& dfnum, const Operand& dfden,
        const ArrayOptions& options) {
  return generator("f", {dfnum, dfden}, options.device).f(shape, dfnum, dfden, options);
}
Array standard_t(const DrawShape& shape, const Operand& df, const ArrayOptions& options) {
  return generator("standard_t", {df}, options.device).standard_t(shape, df, options);
}
Array dirichlet(const Shape& shape, const Array& alpha, const ArrayOptions& options) {
  return generator("dirichlet", {alpha}, options.device).dirichlet(shape, alpha, options);
}
Array negative_binomial(const DrawShape& shape, const Operand& n, const Operand& p) {
  return generator("negative_binomial", {n, p}, {}).negative_binomial(shape, n, p);
}
Array poisson(const DrawShape& shape, const Operand& lam) {
  return generator("poisson", {lam}, {}).poisson(shape, lam);
}
Array binomial(const Shape& shape, int64_t n, double p) {
  return default_state().binomial(shape, n, p);
}
Array geometric(const DrawShape& shape, const Operand& p) {
  return generator("geometric", {p}, {}).geometric(shape, p);
}
Array multinomial(const Shape& shape, int64_t n, const Array& p) {
  return generator("multinomial", {p}, {}).multinomial(shape, n, p);
}

}  // namespace catena::random
