// Random arrays from the default generators of the devices: catena::random::normal({2, 3}). What
// the numbers are, and that they can be repeated, is said in random_state.h.
#pragma once

#include "catena/array/random_state.h"

namespace catena {

// The same on the current device's default generator, from any number of threads.
namespace random {

// The device's default generator, made at first use; all start from the seed of CATENA_SEED (or
// CHAINER_SEED), else from a seed of the system's entropy. ValueError when the variable is not an
// unsigned 64-bit number. The reference stays valid.
RandomState& default_state(Device device);
RandomState& default_state();  // of current_device()
RandomState& get_random_state();
// Seeds the default generators of all devices, also those that are not made yet.
void seed(uint64_t value);
// Seeds the device's default generator.
void seed(uint64_t value, Device device);
void seed();  // all from one new seed of the system's entropy
// All default generators start again as at the beginning of the process.
void reset_states();

// As the methods of RandomState, from the default generator of the device that the options name, or
// of current_device().
Array uniform(const Shape& shape = {}, double low = 0, std::optional<double> high = {},
              const ArrayOptions& options = {});
Array normal(const Shape& shape = {}, double mean = 0, std::optional<double> deviation = {},
             const ArrayOptions& options = {});
Array integers(const Shape& shape, int64_t low, int64_t high, const ArrayOptions& options = {});
Array bernoulli(const Shape& shape, double p, std::optional<Device> device = {});
Array permutation(int64_t n, std::optional<Device> device = {});

// Uniform numbers of [0, 1), by NumPy's names for them.
Array random_sample(const Shape& shape = {}, const ArrayOptions& options = {});
// The same by NumPy's other names.
inline Array random(const Shape& shape = {}, const ArrayOptions& options = {}) {
  return random_sample(shape, options);
}
inline Array ranf(const Shape& shape = {}, const ArrayOptions& options = {}) {
  return random_sample(shape, options);
}
inline Array sample(const Shape& shape = {}, const ArrayOptions& options = {}) {
  return random_sample(shape, options);
}
// rand is uniform, the others are normal with mean 0 and deviation 1.
Array standard_normal(const Shape& shape = {}, const ArrayOptions& options = {});
Array rand(const Shape& shape = {}, const ArrayOptions& options = {});
Array randn(const Shape& shape = {}, const ArrayOptions& options = {});
// rand(2, 3) as in NumPy.
template <std::integral... Extents>
requires(sizeof...(Extents) > 0) Array rand(Extents... extents) {
  return rand(Shape{static_cast<int64_t>(extents)...});
}
template <std::integral... Extents>
requires(sizeof...(Extents) > 0) Array randn(Extents... extents) {
  return randn(Shape{static_cast<int64_t>(extents)...});
}
Array randint(int64_t low, std::optional<int64_t> high = {}, const Shape& shape = {},
              const ArrayOptions& options = {});
Array random_integers(int64_t low, std::optional<int64_t> high = {}, const Shape& shape = {},
                      const ArrayOptions& options = {});
Array standard_cauchy(const Shape& shape = {}, const ArrayOptions& options = {});
// Of the device of the parameters when these are arrays.
Array uniform(const DrawShape& shape, const Operand& low, const Operand& high = 1,
              const ArrayOptions& options = {});
Array normal(const DrawShape& shape, const Operand& mean, const Operand& deviation = 1,
             const ArrayOptions& options = {});
Array lognormal(const DrawShape& shape = {}, const Operand& mean = 0, const Operand& sigma = 1,
                const ArrayOptions& options = {});
Array exponential(const DrawShape& shape = {}, const Operand& scale = 1,
                  const ArrayOptions& options = {});
Array gumbel(const DrawShape& shape = {}, const Operand& location = 0, const Operand& scale = 1,
             const ArrayOptions& options = {});
Array laplace(const DrawShape& shape = {}, const Operand& location = 0, const Operand& scale = 1,
              const ArrayOptions& options = {});
Array logistic(const DrawShape& shape = {}, const Operand& location = 0, const Operand& scale = 1,
               const ArrayOptions& options = {});
Array rayleigh(const DrawShape& shape = {}, const Operand& scale = 1,
               const ArrayOptions& options = {});
Array weibull(const DrawShape& shape, const Operand& a, const ArrayOptions& options = {});
Array pareto(const DrawShape& shape, const Operand& a, const ArrayOptions& options = {});
Array power(const DrawShape& shape, const Operand& a, const ArrayOptions& options = {});
Array triangular(const DrawShape& shape, const Operand& left, const Operand& mode,
                 const Operand& right, const ArrayOptions& options = {});
Array gamma(const DrawShape& shape, const Operand& k, const Operand& scale = 1,
            const ArrayOptions& options = {});
Array standard_gamma(const DrawShape& shape, const Operand& k, const ArrayOptions& options = {});
Array beta(const DrawShape& shape, const Operand& a, const Operand& b,
           const ArrayOptions& options = {});
Array chisquare(const DrawShape& shape, const Operand& df, const ArrayOptions& options = {});
Array f(const DrawShape& shape, const Operand& dfnum, const Operand& dfden,
        const ArrayOptions& options = {});
Array standard_t(const DrawShape& shape, const Operand& df, const ArrayOptions& options = {});
Array dirichlet(const Shape& shape, const Array& alpha, const ArrayOptions& options = {});
Array negative_binomial(const DrawShape& shape, const Operand& n, const Operand& p);
Array poisson(const DrawShape& shape, const Operand& lam);
Array binomial(const Shape& shape, int64_t n, double p);
Array geometric(const DrawShape& shape, const Operand& p);
Array multinomial(const Shape& shape, int64_t n, const Array& p);
Array choice(int64_t n, const Shape& shape = {}, YesNo replace = true, const OptionalArray& p = {});
// Of the array's device.
Array choice(const Array& a, const Shape& shape = {}, YesNo replace = true,
             const OptionalArray& p = {});
template <class Population, RandomLength T>
Array choice(const Population& population, T count, YesNo replace = true,
             const OptionalArray& p = {}) {
  return choice(population, Shape{static_cast<int64_t>(count)}, replace, p);
}
Array permutation(const Array& a);
void shuffle(const Array& a);
// Of the host's generator.
std::vector<uint8_t> bytes(int64_t count);

}  // namespace random

}  // namespace catena
