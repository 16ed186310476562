// The layer's state: its averages, what moves them, and where they go with the model.
#include "catena/autograd/test_scope.h"
#include "catena/core/graph.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/normalization.h"
#include "catena/serializers/npz.h"
#include "catena/testing_markers.h"
#include "functions/normalization/batch_normalization_cases.h"
#include "temp_folder.h"

namespace catena {
namespace {

using namespace testing::normalization;

class BatchNormalizationLayer : public NormalizationOnDevice {};

TEST_P(BatchNormalizationLayer, AveragesMoveWithDecay) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const F::BatchNormalization bn = layer(c, {.decay = 0.75});
    const double m = values_a_channel(c);
    Array mean = zeros(c.channels, device()), var = ones(c.channels, device());
    for (uint64_t step = 0; step < 3; ++step) {
      const Array x = batch(c, step);
      bn(x);
      mean = mean * 0.75 + batch_mean(c, x) * 0.25;
      var = var * 0.75 + batch_var(c, x) * (0.25 * m / (m - 1));
    }
    EXPECT_EQ(testing::difference(bn.avg_mean.data(), mean, 1e-12, 1e-12), "");
    EXPECT_EQ(testing::difference(bn.avg_var.data(), var, 1e-12, 1e-12), "");
    EXPECT_EQ(bn.N.data().item<int64_t>(), 0);
  }
}

// Over ranks the averages are weighted by the samples.
TEST_P(BatchNormalizationLayer, RefusedCallsDoNotCount) {
  const DeviceScope scope(device());
  const F::BatchNormalization bn(4);
  EXPECT_THROW(bn(draw({5, 3}, -1, 1, 0, Dtype::kFloat32)), InvalidType);
  EXPECT_EQ(bn.avg_mean.samples(), 0);
  bn(draw({5, 4}, -1, 1, 0, Dtype::kFloat32));
  EXPECT_EQ(bn.avg_mean.samples(), 5);
  EXPECT_EQ(bn.avg_var.samples(), 5);
}

TEST_P(BatchNormalizationLayer, FinetuneGivesThePopulationStatistics) {
  const Case c = cases()[2];
  const F::BatchNormalization bn = layer(c);
  const double m = values_a_channel(c);
  bn(batch(c, 7));  // forgotten by the first finetune
  for (int round = 0; round < 2; ++round) {
    bn.start_finetuning();
    Array mean = zeros(c.channels, device()), var = mean.copy();
    for (uint64_t step = 0; step < 4; ++step) {
      const Array x = batch(c, step + 10 * uint64_t(round));
      EXPECT_EQ(testing::difference(bn.finetune(x).data(),
                                    normalized(c, x, batch_mean(c, x), batch_var(c, x), 2e-5),
                                    1e-12, 1e-12),
                "");
      mean += batch_mean(c, x) / 4.0;
      var += batch_var(c, x) * (m / (m - 1) / 4.0);
    }
    EXPECT_EQ(bn.N.data().item<int64_t>(), 4);
    EXPECT_EQ(testing::difference(bn.avg_mean.data(), mean, 1e-12, 1e-12), "");
    EXPECT_EQ(testing::difference(bn.avg_var.data(), var, 1e-12, 1e-12), "");
  }
}

TEST_P(BatchNormalizationLayer, TestStateUsesTheAverages) {
  const Case c = cases()[2];
  F::BatchNormalization bn = layer(c, {.eps = 1e-3});
  bn.avg_mean.copy_from(beta(c));
  bn.avg_var.copy_from(variance(c));
  const Array x = batch(c), by_averages = normalized(c, x, beta(c), variance(c), 1e-3),
              by_batch = normalized(c, x, batch_mean(c, x), batch_var(c, x), 1e-3);
  const auto is = [&](const Variable& y, const Array& expected) {
    return testing::difference(y.data(), expected, 1e-12, 1e-12);
  };
  EXPECT_EQ(is(bn(x, false), by_averages), "");
  bn.eval();
  EXPECT_EQ(is(bn(x), by_averages), "");
  EXPECT_EQ(testing::difference(bn.avg_mean.data(), beta(c)), "") << "left alone in test state";
  EXPECT_EQ(is(bn(x, true), by_batch), "") << "the call overrides the state";
  EXPECT_NE(testing::difference(bn.avg_mean.data(), beta(c)), "");
  bn.train();
  {
    const TestScope scope(bn);
    const Array before = bn.avg_mean.data().copy();
    bn(x);
    EXPECT_EQ(testing::difference(bn.avg_mean.data(), before), "");
  }
  EXPECT_EQ(is(bn(x), by_batch), "");
}

// What backward needs of the averages must not have moved since.
TEST_P(BatchNormalizationLayer, RefusesAveragesThatMovedBeforeBackward) {
  const Case c = cases()[2];
  const F::BatchNormalization bn = layer(c);
  const Variable y = bn(Variable(batch(c)), false);
  bn(batch(c, 2), true);
  y.set_grad(batch(c, 4));
  EXPECT_THROW(y.backward(), GradientError);
}

TEST_P(BatchNormalizationLayer, LayerHasTheStartValuesThatItPromises) {
  DeviceScope scope(device());
  const F::BatchNormalization bn(5);
  EXPECT_EQ(bn.eps(), 2e-5);
  EXPECT_EQ(bn.decay(), 0.9);
  EXPECT_EQ(bn.gamma.dtype(), Dtype::kFloat32);
  EXPECT_EQ(testing::difference(bn.gamma.data(), ones({5}, {Dtype::kFloat32, device()})), "");
  EXPECT_EQ(testing::difference(bn.avg_var.data(), ones({5}, {Dtype::kFloat32, device()})), "");
  for (const Array& a : {bn.beta.data(), bn.avg_mean.data()})
    EXPECT_EQ(testing::difference(a, zeros({5}, {Dtype::kFloat32, device()})), "");
  const F::BatchNormalization as_chainer(5, {.initial_avg_var = 0});
  EXPECT_EQ(testing::difference(as_chainer.avg_var.data(), as_chainer.beta.data()), "");
  EXPECT_EQ(bn.persistent_names(), (std::vector<std::string>{"avg_mean", "avg_var", "N"}));
  EXPECT_EQ(bn.avg_mean.over_ranks(), OverRanks::kMean);
  const F::BatchNormalization half(5, {.dtype = Dtype::kFloat16});
  EXPECT_EQ(half.gamma.dtype(), Dtype::kFloat16);
  EXPECT_EQ(half.avg_mean.dtype(), Dtype::kFloat32);
  EXPECT_EQ(half.avg_var.dtype(), Dtype::kFloat32);
  const F::BatchNormalization shaped(Shape{3, 4});
  EXPECT_EQ(shaped.gamma.shape(), (Shape{3, 4}));
}

struct Net : FunctionSet {
  F::Linear l1{3, 4};
  F::BatchNormalization bn{4};
  CATENA_FUNCTIONS(l1, bn)
  Variable operator()(const Variable& x) { return bn.relu(l1(x)); }
};

TEST_P(BatchNormalizationLayer, AveragesGoWhereTheModelGoes) {
  DeviceScope scope(device());
  const TempFolder folder;
  const NoBackprop no_graph;
  const Array x = draw({6, 3}, -1, 1, 1, Dtype::kFloat32);
  Net net;
  for (int step = 0; step < 3; ++step) net(Variable::constant(x));
  net.eval();
  const Array expected = net(Variable::constant(x)).data();
  Net copied = net;
  copied.bn(copied.l1(x), true);  // its own averages
  EXPECT_EQ(testing::difference(net(Variable::constant(x)).data(), expected), "");
  serializers::save(folder / "net.npz", net);
  Net loaded;
  serializers::load(folder / "net.npz", loaded);
  loaded.eval();
  EXPECT_EQ(testing::difference(loaded(Variable::constant(x)).data(), expected), "");
  Net moved = std::move(net);
  moved.to(cpu(1));
  EXPECT_EQ(moved.bn.avg_var.device(), cpu(1));
  const Array there = moved(Variable::constant(x.to(cpu(1)))).data();
  EXPECT_EQ(testing::difference(there, expected, 1e-6, 1e-5), "");
  EXPECT_THROW(net.bn(x), ValueError) << "moved from";
}

// Replays move the averages, and count the batches of a finetuning, on the device.
TEST_P(BatchNormalizationLayer, IsCaptured) {
  CATENA_NEEDS_GPU();
  if (!device().is_cuda()) GTEST_SKIP() << "graphs need a GPU";
  const Case c = cases()[2];
  const F::BatchNormalization bn = layer(c), eager = layer(c);
  const Array x = batch(c);
  const auto step = [&](const F::BatchNormalization& l) {
    l(x);
    l.finetune(x);
  };
  step(bn);
  step(eager);
  cuda::Graph graph = cuda::Graph::capture(device(), [&] { step(bn); });
  for (uint64_t replay = 1; replay < 4; ++replay) {
    x.assign(batch(c, replay));
    graph.launch();
    step(eager);
  }
  EXPECT_EQ(bn.N.data().item<int64_t>(), 4);
  EXPECT_EQ(bn.avg_mean.samples(), eager.avg_mean.samples());
  EXPECT_EQ(bn.avg_var.samples(), eager.avg_var.samples());
  EXPECT_EQ(testing::difference(bn.avg_mean.data(), eager.avg_mean.data()), "");
  EXPECT_EQ(testing::difference(bn.avg_var.data(), eager.avg_var.data()), "");
}

CATENA_ON_DEVICES(BatchNormalizationLayer);

}  // namespace
}  // namespace catena
