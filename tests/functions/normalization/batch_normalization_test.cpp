// The functions batch_normalization and fixed_batch_normalization, and the layer's calls of them.
#include "catena/functions/normalization/batch_normalization.h"

#include <set>

#include "catena/core/graph.h"
#include "catena/functions/normalization.h"
#include "catena/kernels/normalization.h"
#include "catena/testing_markers.h"
#include "error_text.h"
#include "functions/normalization/batch_normalization_cases.h"

namespace catena {
namespace {

using namespace testing::normalization;
using F::FixedBatchNormalizationOptions;
using F::NormalizationOptions;

class BatchNormalization : public NormalizationOnDevice {};

TEST_P(BatchNormalization, ArraysAreConstantsAsResidualsToo) {
  const Array x = draw({4, 3}), ones3 = ones({3}, {x.dtype(), x.device()}),
              zeros3 = zeros({3}, {x.dtype(), x.device()});
  EXPECT_FALSE(F::batch_normalization(x, ones3, zeros3, {.residual = x}).requires_grad());
  EXPECT_FALSE(F::fixed_batch_normalization(x, ones3, zeros3, zeros3, ones3, {.residual = x})
                   .requires_grad());
  const Variable quiet(x, Volatile::on);
  EXPECT_NO_THROW(F::batch_normalization(quiet, ones3, zeros3, {.residual = x}));
}

TEST_P(BatchNormalization, FusedFormsEqualTheirCompositions) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto run = [&](bool train, bool fused) {
      const F::BatchNormalization bn =
          layer(c, {.initial_gamma = gamma(c), .initial_beta = beta(c)});
      bn.avg_mean.copy_from(beta(c));
      bn.avg_var.copy_from(variance(c));
      const Variable x(batch(c)), r(batch(c, 9));
      const Variable h = fused ? bn.relu(x, train) : F::relu(bn(x, train));
      const Variable y = fused ? bn.add_relu(h, r, train) : F::relu(bn(h, train) + r);
      y.set_grad(batch(c, 4));
      y.backward();
      return Arrays{y.data(), x.grad(), r.grad(), bn.gamma.grad(), bn.beta.grad()};
    };
    for (const bool train : {true, false}) {
      const Arrays fused = run(train, true), composed = run(train, false);
      for (size_t i = 0; i < fused.size(); ++i)
        EXPECT_EQ(testing::difference(fused[i], composed[i], 1e-12, 1e-12), "") << i;
    }
  }
}

// What the last backward kernel was told of the relu, by a provider that is asked first and
// declines.
struct Told {
  bool relu = false, follows_from_x = false, beta = false;
  bool operator==(const Told&) const = default;
};
Told g_told;
bool listen(const BatchNormalizationGradCall& call) {
  g_told = {call.y != nullptr, call.y_follows_from_x, call.beta != nullptr};
  return false;
}

// Kernels may find out where y is positive from x where nothing else went into y.
TEST_P(BatchNormalization, TellsKernelsWhetherYFollowsFromX) {
  auto& slot = kernels::batch_normalization_grad;
  const DeviceType type = device().type();
  static std::set<DeviceType> listening;
  if (listening.insert(type).second) {
    slot.providers(type);  // loads them, so that this one comes before all
    slot.provide(type, "listening", &listen, 1000);
  }
  const Case c = cases()[2];
  const Variable x(batch(c)), g(gamma(c)), b(beta(c));
  const auto told = [](const Variable& y) {
    y.set_grad(y.data());
    y.backward();
    return std::exchange(g_told, {});
  };
  EXPECT_EQ(told(F::batch_normalization(x, g, b)), (Told{false, false, false}));
  EXPECT_EQ(told(F::batch_normalization(x, g, b, {.relu = true})), (Told{true, true, true}));
  // On a GPU these keep a mask, whose maker is asked and not the list of providers.
  if (!device().is_cuda()) {
    EXPECT_EQ(told(F::batch_normalization(x, g, b, {.relu = true, .residual = x})),
              (Told{true, false, false}));
    EXPECT_EQ(told(F::fixed_batch_normalization(x, g, b, b, variance(c), {.relu = true})),
              (Told{true, false, false}));
  }
  const F::BatchNormalization plain = layer(c, {.use_gamma = false, .use_beta = false});
  EXPECT_EQ(told(plain.relu(x)), (Told{true, true, false}));
}

// A beta written before backward would let other elements through.
TEST_P(BatchNormalization, RefusesABetaWrittenBeforeBackward) {
  const Case c = cases()[2];
  const Variable x(batch(c)), g(gamma(c)), b(beta(c));
  const Variable y = F::batch_normalization(x, g, b, {.relu = true});
  b.data().fill(0);
  y.set_grad(y.data());
  EXPECT_THROW(y.backward(), GradientError);
}

// The function moves the arrays that it is given.
TEST_P(BatchNormalization, FunctionMovesRunningStatistics) {
  const Case c = cases()[2];
  const Array mean = ones(c.channels, device()), var = mean.copy(), x = batch(c);
  F::batch_normalization(x, gamma(c), beta(c),
                         {.running_mean = mean, .running_var = var, .decay = 0.5});
  EXPECT_EQ(testing::difference(mean, batch_mean(c, x) * 0.5 + 0.5, 1e-12), "");
  const double m = values_a_channel(c);
  EXPECT_EQ(testing::difference(var, batch_var(c, x) * (0.5 * m / (m - 1)) + 0.5, 1e-12), "");
}

TEST_P(BatchNormalization, WithoutGammaAndBeta) {
  const Case c = cases()[2];
  const Array x = batch(c);
  const auto f = [&](const F::BatchNormalization& bn) {
    return [&bn](const Variable& v) { return bn(v); };
  };
  const F::BatchNormalization plain = layer(c, {.eps = 0.1, .use_gamma = false, .use_beta = false});
  EXPECT_EQ(plain.parameter_names(), std::vector<std::string>{});
  EXPECT_EQ(testing::difference(plain(x).data(),
                                normalized(c, x, batch_mean(c, x), batch_var(c, x), 0.1), 1e-12),
            "");
  expect_gradients(f(plain), x, "neither");
  const F::BatchNormalization scaled = layer(c, {.eps = 0.1, .use_beta = false});
  EXPECT_EQ(scaled.parameter_names(), std::vector<std::string>{"gamma"});
  expect_gradients(f(scaled), x, "gamma");
  const F::BatchNormalization shifted = layer(c, {.eps = 0.1, .use_gamma = false});
  EXPECT_EQ(shifted.parameter_names(), std::vector<std::string>{"beta"});
  expect_gradients(f(shifted), x, "beta");
}

TEST_P(BatchNormalization, RefusesBatchesWithoutAVariance) {
  const F::BatchNormalization bn = layer(cases()[2]);
  EXPECT_EQ(error_of<ValueError>([&] {
              bn(zeros({0, 3, 2, 2}, {Dtype::kFloat64, device()}));
            }),
            "BatchNormalization: x of shape (0, 3, 2, 2) has no values, which has no variance; use "
            "at least two samples, or given statistics (fixed_batch_normalization, a layer in test "
            "state)");
  EXPECT_EQ(error_of<ValueError>([&] {
              bn.finetune(draw({1, 3}));
            }),
            "BatchNormalization: x of shape (1, 3) has one value a channel, which has no variance; "
            "use at least two samples, or given statistics (fixed_batch_normalization, a layer in "
            "test state). If the last batch of an epoch has one sample, drop the last batch "
            "(drop_last).");
  EXPECT_EQ(bn.N.data().item<int64_t>(), 0) << "a refused batch does not count";
  EXPECT_EQ(bn(draw({1, 3}), false).shape(), (Shape{1, 3}));
}

struct Net : FunctionSet {
  F::BatchNormalization bn{4}, plain{4, {.use_gamma = false, .use_beta = false}};
  CATENA_FUNCTIONS(bn, plain)
};

// Other errors are in the function's record.
TEST_P(BatchNormalization, NamesWhatDoesNotFit) {
  const Case c = cases()[2];
  const Array g = gamma(c), b = beta(c);
  const std::string dtypes =
      error_of<InvalidType>([&] { F::batch_normalization(batch(c, 1, Dtype::kFloat32), g, b); });
  expect_contains(
      dtypes, {"Expect: gamma.dtype == float32", "convert the input with .astype(dtype::float64)"});
  Net net;
  net.to(device());
  net.parameters();
  const std::string path = error_of<InvalidType>([&] {
    net.bn(draw({2, 5}, -1, 1, 1, Dtype::kFloat32));
  });
  expect_contains(path, {"BatchNormalization 'bn'"});
  const std::string one = error_of<ValueError>([&] {
    net.bn(draw({1, 4}, -1, 1, 1, Dtype::kFloat32));
  });
  EXPECT_EQ(one.find("BatchNormalization 'bn': x of shape (1, 4) has one value a channel"), 0u)
      << one;
  const std::string bare = error_of<InvalidType>([&] {
    net.plain(draw({2, 5}, -1, 1, 1, Dtype::kFloat32));
  });
  expect_contains(bare, {"BatchNormalization 'plain'"});

  EXPECT_EQ(error_of<ValueError>([&] { F::batch_normalization(batch(c), g, b, {.eps = -1}); }),
            "BatchNormalization: expected an eps of at least 0, got -1");
  EXPECT_EQ(
      error_of<ValueError>([&] { F::batch_normalization(batch(c), g, b, {.running_mean = b}); }),
      "BatchNormalization: got running_mean without running_var; give both, or none");
  const auto without_a_value = [&](const F::NormalizationOptions& options) {
    EXPECT_THROW(F::batch_normalization(batch(c), g, b, options), ValueError);
  };
  without_a_value({.running_mean = Array(), .running_var = Array()});
  without_a_value({.residual = Variable()});
  EXPECT_EQ(error_of<ShapeError>([&] {
              F::batch_normalization(batch(c), g, b, {.running_mean = b, .running_var = draw({4})});
            }),
            "BatchNormalization: running_var has shape (4,), expected that of gamma, (3,)");
  EXPECT_THROW(
      F::batch_normalization(batch(c), g, b, {.running_mean = b, .running_var = b, .decay = 2}),
      ValueError);
  EXPECT_THROW(F::batch_normalization(
                   batch(c), g, b, {.running_mean = b, .running_var = b.astype(Dtype::kFloat32)}),
               DtypeError);
  EXPECT_THROW(
      F::batch_normalization(batch(c), g, b, {.running_mean = padded(b), .running_var = b.copy()}),
      ValueError);
  const Device other = device() == cpu(0) ? cpu(1) : cpu(0);
  EXPECT_THROW(F::batch_normalization(batch(c), g.to(other), b), DeviceError);
  EXPECT_THROW(F::BatchNormalization(0), ValueError);
  EXPECT_THROW(F::BatchNormalization(3, {.decay = -0.5}), ValueError);
  EXPECT_THROW(F::BatchNormalization(3, {.dtype = Dtype::kInt32}), DtypeError);
  EXPECT_THROW(F::BatchNormalization(3, {.initial_gamma = draw({4})}), ShapeError);
}

// A replay computes results and gradients anew, with relu and residual fused.
TEST_P(BatchNormalization, IsCapturedWithBackward) {
  CATENA_NEEDS_GPU();
  if (!device().is_cuda()) GTEST_SKIP() << "graphs need a GPU";
  const Case c = cases()[2];
  const Variable x(batch(c)), residual(batch(c, 1)), g(gamma(c)), b(beta(c));
  const Array gy = batch(c, 2);
  const auto step = [&] {
    const Variable y = F::batch_normalization(x, g, b, {.relu = true, .residual = residual});
    y.set_grad(gy);
    y.backward();
    return std::vector<Array>{y.data(), x.grad(), residual.grad(), g.grad(), b.grad()};
  };
  step();
  std::vector<Array> replayed;
  cuda::Graph graph = cuda::Graph::capture(device(), [&] { replayed = step(); });
  for (uint64_t replay = 3; replay < 6; ++replay) {
    x.data().assign(batch(c, replay));
    graph.launch();
    const std::vector<Array> eager = step();
    for (size_t i = 0; i < eager.size(); ++i)
      EXPECT_EQ(testing::difference(replayed[i], eager[i]), "") << i << ", replay " << replay;
  }
}

CATENA_ON_DEVICES(BatchNormalization);

}  // namespace
}  // namespace catena
