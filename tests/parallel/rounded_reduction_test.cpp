// Gradients that travel in 16 bits and are added in float32.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "catena/array/reduction.h"
#include "error_text.h"
#include "parallel/sharded_training.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // NOLINT: the network and its training
using optimizers::ParameterArena;

struct Weights : FunctionSet {
  OwnedParameter w;
  explicit Weights(int64_t n) : w(zeros({n}, dtype::float32)) {}
  CATENA_PARAMETERS(w)
};

// A rank's gradients: some of one size, of both signs, and of those of rank 0 some so large that a
// one is lost beside them in 16 bits.
Array gradient_of(int rank, int64_t n, Dtype rounded_to) {
  const double large = rounded_to == dtype::bfloat16 ? 256 : 2048;
  std::vector<double> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const double wave = std::sin(1.7 * double(i) + 0.9 * rank);
    values[size_t(i)] = i % 3 == 0   ? (rank == 0 ? large : 1)
                        : i % 3 == 1 ? wave
                                     : wave * wave * 1e-3;
  }
  return array(values, {n}, cpu(0)).astype(dtype::float32);
}

struct Errors {
  double worst = 0;  // largest |got - exact| / (mean of |gradient|) over elements
  void add(double got, double exact, double mean_size) {
    if (mean_size > 0) worst = std::max(worst, std::abs(got - exact) / mean_size);
  }
};

class SixteenBitTest : public ::testing::TestWithParam<std::tuple<Dtype, int>> {};

TEST_P(SixteenBitTest, StaysWithinTheBoundThatSumsIn16BitsViolate) {
  const auto [dtype, ranks] = GetParam();
  constexpr int64_t kElements = 301;
  const double u = dtype == dtype::bfloat16 ? std::ldexp(1, -8) : std::ldexp(1, -11);
  const double additions = ranks * std::ldexp(1, -23);
  std::vector<std::vector<double>> gradients;
  for (int r = 0; r < ranks; ++r)
    gradients.push_back(gradient_of(r, kElements, dtype).to_vector<double>());
  std::vector<double> exact(kElements), size(kElements);
  for (const auto& g : gradients) {
    for (size_t i = 0; i < exact.size(); ++i) {
      exact[i] += g[i] / ranks;
      size[i] += std::abs(g[i]) / ranks;
    }
  }
  for (const Sharding sharding : {Sharding::kNone, Sharding::kStates, Sharding::kGradients}) {
    for (const bool weighted : {false, true}) {
      std::mutex mutex;
      Errors errors;
      int64_t seen = 0;
      comm::run_threads(ranks, [&, dtype = dtype](Communicator& comm) {
        Weights model(kElements);
        model.to(comm.device());
        BucketOptions options = sharded(sharding);
        options.reduce_dtype = dtype;
        auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm, options);
        optimizer.setup(model);
        if (weighted) optimizer.set_batch_weight(1, comm.size());
        optimizer.zero_grads();
        const Array own = gradient_of(comm.rank(), kElements, dtype).to(comm.device());
        F::sum(model.w.variable() * Variable::constant(own)).backward();
        const ParameterArena& arena = optimizer->layout().arenas()[0];
        const auto got = arena.gradient().memory.to_vector<double>();
        const int64_t first = arena.gradient().covers.begin;
        optimizer.update();
        optimizer.check_state();
        const std::lock_guard lock(mutex);
        for (int64_t i = 0; i < int64_t(got.size()) && first + i < kElements; ++i, ++seen) {
          const auto k = static_cast<size_t>(first + i);
          errors.add(got[size_t(i)], exact[k], size[k]);
        }
      });
      EXPECT_EQ(seen, sharding == Sharding::kNone ? ranks * kElements : kElements);
      const double roundings = sharding == Sharding::kNone ? 2 * u + u * u : u;
      EXPECT_LE(errors.worst, roundings + additions) << name(sharding) << weighted;
      EXPECT_GT(errors.worst, u / 8) << "rounds";
    }
  }
  // The same sums with a rounding after each addition.
  Errors in_16_bits;
  for (size_t i = 0; i < exact.size(); ++i) {
    Array sum = zeros({}, dtype);
    for (const auto& g : gradients) sum = sum + full({}, g[i], dtype);
    in_16_bits.add(sum.astype(dtype::float64).item<double>() / ranks, exact[i], size[i]);
  }
  EXPECT_GT(in_16_bits.worst, 2 * u + u * u + additions);
}

INSTANTIATE_TEST_SUITE_P(All, SixteenBitTest,
                         ::testing::Values(std::tuple(dtype::bfloat16, 8),
                                           std::tuple(dtype::float16, 8)),
                         [](const auto& info) {
                           return std::string(name(std::get<0>(info.param)));
                         });

TEST(SixteenBits, TrainTo) {
  for (const BucketOptions& sharding : all_shardings()) {
    ShardedJob job{.dtype = dtype::float32, .options = sharding, .end = 10};
    const Values expected = train_alone(job).values;
    job.options.reduce_dtype = dtype::bfloat16;
    const auto results = over_threads(3, job);
    for (const ShardedResult& result : results) {
      EXPECT_EQ(result.values, results[0].values) << shown(sharding);
      EXPECT_LE(largest_difference(result.values, expected), 0.05) << shown(sharding);
      EXPECT_GT(largest_difference(result.values, expected), 1e-6) << shown(sharding);
    }
  }
}

TEST(SixteenBits, OtherDtypesAreRefused) {
  comm::run_threads(1, [](Communicator& comm) {
    BucketOptions options;
    options.reduce_dtype = dtype::float32;
    expect_contains(error_of<ValueError>(
                        [&] { create_multi_node_optimizer(optimizers::SGD(1), comm, options); }),
                    {"reduce_dtype of float16 or bfloat16", "float32"});
  });
}

}  // namespace
}  // namespace catena::parallel
