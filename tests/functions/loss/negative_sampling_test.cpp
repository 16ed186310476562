// The layer NegativeSampling, its draws, rows out of range, extreme scores and large problems;
// given rows are in the function oracle and have records.
#include "catena/functions/loss/negative_sampling.h"

#include "catena/array/indexing.h"
#include "catena/core/graph.h"
#include "catena/kernels/sampling.h"
#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Sampled : public OnDevice {
 protected:
  Array ids(const std::vector<int32_t>& values) const { return array(values).to(device()); }
  F::NegativeSampling layer(const std::vector<double>& counts, int64_t in, int64_t samples,
                            const F::NegativeSamplingOptions& options = {}) const {
    const DeviceScope scope(device());
    return F::NegativeSampling(in, counts, samples, options);
  }
};
CATENA_ON_DEVICES(Sampled);

TEST_P(Sampled, StartsWithZerosAndASampler) {
  const F::NegativeSampling loss = layer({8, 5, 0, 4}, 3, 2);
  EXPECT_EQ(loss.W.shape(), (Shape{4, 3}));
  EXPECT_EQ(loss.W.dtype(), Dtype::kFloat32);
  EXPECT_EQ(testing::difference(loss.W.data(), zeros_like(loss.W.data())), "");
  EXPECT_EQ(loss.sample_size(), 2);
  F::NegativeSampling copy = loss;
  EXPECT_EQ(copy.parameter_names(), (std::vector<std::string>{"W"}));
  EXPECT_EQ(copy.persistent_names(),
            (std::vector<std::string>{"sampler/threshold", "sampler/values"}));
  // Every term is log 2.
  const Variable y = loss(draw({5, 3}, -1, 1, 0, Dtype::kFloat32), ids({0, 1, 2, 3, 0}));
  EXPECT_NEAR(y.data().item<double>(), 15 * std::log(2.0), 1e-4);
}

// Frequencies of the rows that get a gradient.
TEST_P(Sampled, DrawsByThePowerOfTheCounts) {
  random::seed(3);
  const std::vector<double> counts{16, 1, 0, 81};
  const int64_t batch = 4000;
  const F::NegativeSampling loss = layer(counts, 1, 1);
  const Variable y = loss(ones({batch, 1}, {Dtype::kFloat32, device()}),
                          zeros({batch}, {Dtype::kInt32, device()}));
  y.backward();
  // With W 0 a target adds -1/2 to its row, a drawn row 1/2.
  const std::vector<double> g = loss.W.grad().to_cpu().to_vector<double>();
  const double total = 8 + 1 + 27;
  EXPECT_NEAR((g[0] + batch / 2.0) / (batch / 2.0), 8 / total, 0.03);
  EXPECT_NEAR(g[1] / (batch / 2.0), 1 / total, 0.02);
  EXPECT_EQ(g[2], 0);
  EXPECT_NEAR(g[3] / (batch / 2.0), 27 / total, 0.03);
}

// The draws of a call are kept: backward sees those of its forward call.
TEST_P(Sampled, TheLayerIsTheFunctionOfItsDraws) {
  const F::NegativeSampling loss =
      layer({1, 2, 3}, 4, 2, {.power = 1, .initialW = draw({3, 4}, -1, 1, 7)});
  const Array x = draw({2, 4}), t = ids({2, 0});
  random::seed(5);
  const Variable first(x);
  const Variable y = loss(first, t);
  y.backward();
  random::seed(5);
  Array rows = loss.sampler.sample({2, 3});
  rows(Slice(), 0).assign(t);
  const Variable second(x), W(loss.W.data());
  const Variable given = F::negative_sampling(second, rows, W);
  given.backward();
  EXPECT_EQ(testing::difference(y.data(), given.data()), "");
  EXPECT_EQ(testing::difference(first.grad(), second.grad()), "");
  EXPECT_NO_THROW(assert_allclose(loss.W.grad(), W.grad(), 1e-14, 1e-14));
  random::seed(5);
  const Variable drawn = F::negative_sampling(x, t, loss.W, loss.sampler, 2);
  EXPECT_EQ(testing::difference(y.data(), drawn.data()), "");
}

// More terms of a row than are added at a time, a row without any, and sizes with a rest.
TEST_P(Sampled, GradientsOfRowsAreWrittenOrAddToThoseThatAreThere) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
    SCOPED_TRACE(name(dtype));
    const Array x = draw({40, 19}, -1, 1, 0, dtype), W = draw({5, 19}, -1, 1, 1, dtype);
    const Array rows = draw({40, 21}, 0, 4, 2, Dtype::kInt32),
                start = draw({5, 19}, -1, 1, 3, dtype);
    const Array coefficients = zeros({40, 21}, {Dtype::kFloat32, device()});
    const Array loss = zeros({}, {dtype, device()}), gloss = full({}, 0.5, {dtype, device()});
    kernels::sampled_logistic(device(), {&x, &W, &rows, &coefficients, &loss});
    const Array written = full({5, 19}, 7, {dtype, device()}), added = start.copy();
    const auto give = [&](const Array& gW, bool accumulate) {
      kernels::sampled_logistic_grad(
          device(), {&x, &W, &rows, &coefficients, &gloss, nullptr, &gW, accumulate});
    };
    give(written, false);
    give(added, true);
    const double tolerance = dtype == Dtype::kFloat32 ? 1e-4 : 0.05;
    EXPECT_NO_THROW(assert_allclose(added, written + start, tolerance, tolerance));
    EXPECT_EQ(testing::difference(added(4), start(4)), "");
    EXPECT_EQ(testing::difference(written(4), zeros_like(start(4))), "");
    const Variable exact(W.astype(Dtype::kFloat64));
    (F::negative_sampling(x.astype(Dtype::kFloat64), rows, exact) * 0.5).backward();
    EXPECT_NO_THROW(assert_allclose(written, exact.grad(), tolerance, tolerance));
  }
}

TEST_P(Sampled, RowsOutOfRange) {
  const Array x = draw({2, 3}), W = draw({4, 3});
  const Array rows = ids({0, 1, 4, 2}).reshape({2, 2});
  if (device().is_cpu()) {
    EXPECT_EQ(error_of<ValueError>([&] { F::negative_sampling(x, rows, W); }),
              "NegativeSampling: row 4 at position 2 is outside [0, 4)");
    EXPECT_THROW(F::negative_sampling(x, ids({0, -1, 2, 2}).reshape({2, 2}), W), ValueError);
    return;
  }
  const Variable scores(x), table(W);
  const Variable y = F::negative_sampling(scores, rows, table);
  EXPECT_TRUE(std::isnan(y.data().item<double>()));
  y.backward();
  const Array g = table.grad();
  EXPECT_FALSE(std::isnan(sum(g).item<double>()));
  EXPECT_FALSE(std::isnan(sum(scores.grad()).item<double>()));
}

// exp of these scores overflows, and its inverse underflows.
TEST_P(Sampled, LargeScoresKeepTheirLossAndGradients) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
    const Variable x(full({1, 1}, 1000, {dtype, device()}));
    const Variable W(array(std::vector<double>{1, -1}, {2, 1}).astype(dtype).to(device()));
    // log(1 + e^1000) of the target -1000, and of the drawn 1000.
    const Variable y = F::negative_sampling(x, ids({1, 0}).reshape({1, 2}), W);
    y.backward({.create_graph = true});
    EXPECT_EQ(y.data().item<double>(), 2000);
    EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{2}));
    EXPECT_EQ(W.grad().to_vector<double>(), (std::vector<double>{1000, -1000}));
    const Variable none = F::negative_sampling(x, ids({0, 1}).reshape({1, 2}), W);
    for (const bool graph : {false, true}) {
      x.set_grad(Array());
      none.backward({.create_graph = graph});
      EXPECT_EQ(none.data().item<double>(), 0);
      EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{0})) << graph;
    }
  }
}

TEST_P(Sampled, ManyTermsIn16BitsAreSummedInFloat) {
  const int64_t batch = 700;
  const Array x = draw({batch, 8}, -1, 1, 1, Dtype::kFloat16);
  const Array W = draw({50, 8}, -1, 1, 2, Dtype::kFloat16);
  const Array rows = random_array({batch, 6}, 0, 50, Dtype::kInt32, device(), 3);
  const Variable narrow(W), wide(W.astype(Dtype::kFloat64));
  const Variable y = F::negative_sampling(x, rows, narrow);
  const Variable exact = F::negative_sampling(x.astype(Dtype::kFloat64), rows, wide);
  y.backward();
  exact.backward();
  EXPECT_NEAR(y.data().item<double>() / exact.data().item<double>(), 1, 1e-3);
  EXPECT_NO_THROW(assert_allclose(narrow.grad(), wide.grad(), 2e-2, 2e-3));
}

// More samples than blocks of a GPU, and sizes that warps do not divide.
TEST_P(Sampled, LargeProblemsAreThoseOfTheCpu) {
  const Array x = random_array({3000, 70}, -1, 1, Dtype::kFloat32, cpu(), 1),
              W = random_array({900, 70}, -1, 1, Dtype::kFloat32, cpu(), 2),
              rows = random_array({3000, 7}, 0, 900, Dtype::kInt32, cpu(), 3);
  const auto run = [&](Device where) {
    const Variable xs(x.to(where)), table(W.to(where));
    const Variable y = F::negative_sampling(xs, rows.to(where), table);
    y.backward();
    return Arrays{y.data().to_cpu(), xs.grad().to_cpu(), table.grad().to_cpu()};
  };
  const Arrays expected = run(cpu(0)), got = run(device());
  for (size_t i = 0; i < 3; ++i) EXPECT_NO_THROW(assert_allclose(got[i], expected[i], 1e-4, 1e-5));
}

TEST_P(Sampled, RefusesSizesSamplersAndCountsThatMakeNoSense) {
  EXPECT_EQ(error_of<ValueError>([&] {
              layer({1, -2}, 3, 2);
            }),
            "NegativeSampling: count -2 at position 1 is negative or not finite");
  EXPECT_EQ(error_of<ValueError>([&] { layer({}, 3, 2); }),
            "NegativeSampling: expected an in_size and counts of at least 1, got 3 and 0");
  EXPECT_EQ(error_of<ValueError>([&] { layer({1}, 3, 0); }),
            "NegativeSampling: expected a sample_size from 1 to 2147483647, got 0");
  EXPECT_THROW(layer({1}, 3, std::numeric_limits<int64_t>::max()), ValueError);
  EXPECT_EQ(error_of<ValueError>([&] {
              layer({2, 0}, 3, 1, {.power = -1});
            }),
            "NegativeSampling: count 0 at position 1 to the power -1 is inf, expected a finite "
            "number");
  EXPECT_THROW(layer({1}, 3, 1, {.initialW = draw({3, 1})}), ShapeError);
  F::NegativeSampling loss = layer({1, 1}, 3, 1, {.dtype = Dtype::kFloat64});
  const Array x = draw({2, 3}), t = ids({0, 1});
  EXPECT_EQ(error_of<ValueError>([&] {
              F::negative_sampling(x, t, draw({4, 3}), loss.sampler, 1);
            }),
            "NegativeSampling: the sampler draws from 2 rows, but W has 4");
  WalkerAlias elsewhere = loss.sampler;
  elsewhere.to(cpu(7));
  expect_contains(error_of<DeviceError>([&] { F::negative_sampling(x, t, loss.W, elsewhere, 1); }),
                  {"the sampler is on cpu:7"});
  const F::NegativeSampling moved = std::move(loss);
  EXPECT_EQ(error_of<ValueError>([&] { loss(x, t); }),
            "NegativeSampling: this layer has no weights; it was moved from");
}

TEST(SampledOnGpu, ReplaysDrawNewRows) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  const F::NegativeSampling loss(3, std::vector<double>(500, 1.0), 4);
  const Array x = ones({2, 3}, {Dtype::kFloat32, gpu}), t = zeros({2}, {Dtype::kInt32, gpu});
  const auto step = [&] {
    loss.W.zero_grad();
    loss(x, t).backward();
  };
  step();
  cuda::Graph graph = cuda::Graph::capture(gpu, step);
  graph.launch();
  const Array first = loss.W.grad().copy();
  graph.launch();
  EXPECT_NE(testing::difference(loss.W.grad(), first), "");
  EXPECT_NEAR(sum(loss.W.grad()).item<double>(), 3 * (8 * 0.5 - 2 * 0.5), 1e-5);
}

}  // namespace
}  // namespace catena
