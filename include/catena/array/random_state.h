// RandomState: a stream of random numbers from Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011): counter-based, so that raw bits, integers, uniform,
// bernoulli and permutation are identical on every device and for every launch shape; normal agrees
// within 4 ulp.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "catena/array/arguments.h"
#include "catena/array/array.h"
#include "catena/array/options.h"
#include "catena/core/config.h"
#include "catena/kernels/random.h"

namespace catena {

// Integers accepted as the shape of a 1-d result.
template <class T>
concept RandomLength = std::integral<T> && !std::same_as<T, bool>;

// The shape of a draw: {2, 3}, x.shape(), or `none` for the shape that the distribution's array
// parameters broadcast to (0-d when all are numbers), as size=None in NumPy.
class DrawShape {
 public:
  DrawShape() = default;  // 0-d
  DrawShape(std::initializer_list<int64_t> extents) : shape_(extents) {}
  DrawShape(const Shape& shape) : shape_(shape) {}
  template <RandomLength I>
  DrawShape(const std::vector<I>& extents) : shape_(extents) {}
  DrawShape(std::nullopt_t) : of_parameters_(true) {}

  // Whether the parameters determine the shape; if not, the shape.
  bool of_parameters() const { return of_parameters_; }
  const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
  bool of_parameters_ = false;
};

// A stream of random numbers; each device has a default one. Threads may draw from one at once:
// each call gets different numbers, but which ones depends on the order of the calls. For
// reproducible numbers give each thread a separate RandomState.
//
// The shape comes first and may be left out for a 0-d result. The options come last: a dtype, a
// device, or both, normal({2}, 0, 1, {dtype::float32, "cuda:0"}). Arrays are made on the given
// device, else on current_device(), and drawn on its current stream: StreamScope binds draws to a
// stream (CuPy's set_stream). The numbers of a seed do not depend on device, stream, threads or
// launch shape: integers, uniform and bernoulli numbers agree bit for bit, numbers computed with
// logarithms, square roots and cosines within the rounding of these functions (4 ulp each).
//
// Without a dtype, floats are drawn in default_float() (config.h), integers in int64, and randint
// and random_integers in int32.
class RandomState {
 public:
  RandomState();  // from the system's entropy
  explicit RandomState(uint64_t seed);
  void seed(uint64_t seed);
  void seed();  // from the system's entropy

  // [low, high), and (high, low] when high is lower; high is 1 and deviation 1 unless given.
  // float16, bfloat16, float32 (24 bits) or float64 (53 bits). A number that would round to `high`
  // becomes the value of the dtype just before it. ValueError when a bound or high - low is not
  // finite (in float32 for dtypes of 16 bits).
  Array uniform(const Shape& shape = {}, double low = 0, std::optional<double> high = {},
                const ArrayOptions& options = {});
  // Box-Muller on pairs of the same bits. ValueError for a negative deviation.
  Array normal(const Shape& shape = {}, double mean = 0, std::optional<double> deviation = {},
               const ArrayOptions& options = {});
  // Integers of [low, high), unbiased; ValueError when the range is empty or does not fit dtype.
  Array integers(const Shape& shape, int64_t low, int64_t high, const ArrayOptions& options = {});
  // true with probability p.
  Array bernoulli(const Shape& shape, double p, std::optional<Device> device = {});
  // 0 .. n-1 in random order, int64.
  Array permutation(int64_t n, std::optional<Device> device = {});

  // NumPy's and CuPy's names and further distributions -----------------------------------------
  // uniform of [0, 1) and normal with mean 0 and deviation 1.
  Array random_sample(const Shape& shape = {}, const ArrayOptions& options = {});
  Array standard_normal(const Shape& shape = {}, const ArrayOptions& options = {});
  Array rand(const Shape& shape = {}, const ArrayOptions& options = {});
  Array randn(const Shape& shape = {}, const ArrayOptions& options = {});
  // Of [low, high), or [0, low) without high. ValueError "low >= high". One range for all numbers:
  // for a range per element take floor(uniform(none, low, high)).
  Array randint(int64_t low, std::optional<int64_t> high = {}, const Shape& shape = {},
                const ArrayOptions& options = {});
  // Of [low, high], or [1, low] without high.
  Array random_integers(int64_t low, std::optional<int64_t> high = {}, const Shape& shape = {},
                        const ArrayOptions& options = {});
  // int32 of [0, largest]; ValueError when largest is negative.
  Array interval(int32_t largest, const Shape& shape = {});
  // Density 1 / (pi (1 + x^2)).
  Array standard_cauchy(const Shape& shape = {}, const ArrayOptions& options = {});

  // Each parameter of the following is a number or an array. Arrays broadcast against each other
  // and to `shape` (else ShapeError), and the numbers are drawn on their device (DeviceError if
  // the options name another). A parameter out of its range, or NaN, is a ValueError; checking
  // arrays waits for a GPU. Locations and the bounds of uniform have no range: arrays of
  // them are not checked.
  //
  // The functions up to triangular draw from the standard distribution and transform the result. So
  // an array of equal elements gives the same numbers as one number: the same bits for uniform and
  // normal, within 4 ulp for the others. Arrays are not checked while a graph is captured.
  Array uniform(const DrawShape& shape, const Operand& low, const Operand& high = 1,
                const ArrayOptions& options = {});
  Array normal(const DrawShape& shape, const Operand& mean, const Operand& deviation = 1,
               const ArrayOptions& options = {});
  // exp(normal).
  Array lognormal(const DrawShape& shape = {}, const Operand& mean = 0, const Operand& sigma = 1,
                  const ArrayOptions& options = {});
  // Density exp(-x / scale) / scale on [0, inf). ValueError for a negative scale, as all below.
  Array exponential(const DrawShape& shape = {}, const Operand& scale = 1,
                    const ArrayOptions& options = {});
  // Location + scale * -log(-log(u)).
  Array gumbel(const DrawShape& shape = {}, const Operand& location = 0, const Operand& scale = 1,
               const ArrayOptions& options = {});
  // Location +- exponential(scale).
  Array laplace(const DrawShape& shape = {}, const Operand& location = 0, const Operand& scale = 1,
                const ArrayOptions& options = {});
  // Location + scale * log(u / (1 - u)).
  Array logistic(const DrawShape& shape = {}, const Operand& location = 0, const Operand& scale = 1,
                 const ArrayOptions& options = {});
  // Scale * sqrt(-2 log(u)).
  Array rayleigh(const DrawShape& shape = {}, const Operand& scale = 1,
                 const ArrayOptions& options = {});
  // With distribution functions 1 - exp(-x^a), 1 - (1 + x)^-a, x^a on [0, 1]. ValueError unless
  // a > 0.
  Array weibull(const DrawShape& shape, const Operand& a, const ArrayOptions& options = {});
  Array pareto(const DrawShape& shape, const Operand& a, const ArrayOptions& options = {});
  Array power(const DrawShape& shape, const Operand& a, const ArrayOptions& options = {});
  // Density rising from left to mode and falling to right; ValueError unless they ascend.
  Array triangular(const DrawShape& shape, const Operand& left, const Operand& mode,
                   const Operand& right, const ArrayOptions& options = {});

  // Computed in float64.
  //
  // Drawn by rejection: about one number in twenty is drawn again, round by round. Each round waits
  // for a GPU once to learn how many are left (4 to 6 rounds for a million), so these functions
  // throw Error during graph capture. A comparison of doubles decides, so devices whose logarithms
  // round differently may differ in one number of some 10^13.
  //
  // Density x^(k - 1) exp(-x / scale) / (scale^k Gamma(k)); k, scale of [0, 1e300], as all below.
  Array gamma(const DrawShape& shape, const Operand& k, const Operand& scale = 1,
              const ArrayOptions& options = {});
  Array standard_gamma(const DrawShape& shape, const Operand& k, const ArrayOptions& options = {});
  // Density proportional to x^(a - 1) (1 - x)^(b - 1) on [0, 1]; a, b > 0.
  Array beta(const DrawShape& shape, const Operand& a, const Operand& b,
             const ArrayOptions& options = {});
  // Chi-square, F and Student's t distributions; degrees of freedom > 0.
  Array chisquare(const DrawShape& shape, const Operand& df, const ArrayOptions& options = {});
  Array f(const DrawShape& shape, const Operand& dfnum, const Operand& dfden,
          const ArrayOptions& options = {});
  Array standard_t(const DrawShape& shape, const Operand& df, const ArrayOptions& options = {});
  // Shares that add up to 1, (shape..., length of alpha); alpha is 1-d, its elements > 0.
  Array dirichlet(const Shape& shape, const Array& alpha, const ArrayOptions& options = {});
  // int64 failures before success n (n > 0 need not be whole) where each try succeeds with
  // probability p of (0, 1].
  Array negative_binomial(const DrawShape& shape, const Operand& n, const Operand& p);

  // int64 numbers of events at a rate lam of 0 to 1e15. A single lam up to 1e6: by inversion, the
  // same bit for bit on every device; else by rejection, as above. An Error during graph capture.
  Array poisson(const DrawShape& shape, const Operand& lam);
  // int64 successes of n trials with probability p each, by inversion as above. n and p are single
  // numbers, because their table is made on the host. ValueError if n p (1 - p) exceeds 1e10: the
  // table grows with its square root.
  Array binomial(const Shape& shape, int64_t n, double p);
  // int64 trials up to the first success, at least 1; p of [1e-17, 1].
  Array geometric(const DrawShape& shape, const Operand& p);
  // The count of each outcome in n draws with probabilities p (as for choice): int64 (shape...,
  // length of p). Makes all n draws for each row; waits for a GPU.
  Array multinomial(const Shape& shape, int64_t n, const Array& p);

  // int64 positions of [0, n), each equally likely, or with the probabilities p: 1-d of length n,
  // not negative, with a sum of 1 (else ValueError). As in NumPy, the sum may differ from 1 by the
  // square root of the epsilon of the dtype (float64 for integers); it is then normalised. Without
  // replacement all positions differ; drawing more than n, or more than there are positive
  // probabilities, is a ValueError. Weighted draws build their tables on the host, so an array p on
  // a GPU is waited for.
  Array choice(int64_t n, const Shape& shape = {}, YesNo replace = true,
               const OptionalArray& p = {});
  // Chooses elements of an array along its first axis, on its device.
  Array choice(const Array& a, const Shape& shape = {}, YesNo replace = true,
               const OptionalArray& p = {});
  // choice(5, 3) as in NumPy: one number is the shape of a 1-d result.
  template <class Population, RandomLength T>
  Array choice(const Population& population, T count, YesNo replace = true,
               const OptionalArray& p = {}) {
    return choice(population, Shape{static_cast<int64_t>(count)}, replace, p);
  }
  // A copy with the first axis in random order. ShapeError for 0-d.
  Array permutation(const Array& a);
  // The same in place.
  void shuffle(const Array& a);
  // Random bytes on the host.
  std::vector<uint8_t> bytes(int64_t count);

  // Reserves the numbers of `blocks` Philox blocks for work on `device`. While a graph is captured
  // there, the numbers are those of each launch: a replayed step draws what an eager one would.
  RandomBits reserve(uint64_t blocks, Device device = current_device());
  // Everything needed to continue the stream elsewhere (seed, offset).
  struct State {
    uint64_t seed, offset;
  };
  // Reads the state, or continues from one: the same numbers follow as when it was read.
  State state() const;
  void set_state(State state);

  // A copy continues independently from the same state. Captured graphs keep the state they use.
  RandomState(const RandomState& other);
  RandomState& operator=(const RandomState& other);

 private:
  struct Shared;  // also held by the graphs that draw from it
  std::shared_ptr<Shared> shared_;
};

}  // namespace catena
