// Replayed updates equal eager ones bit for bit. Needs a GPU.
#include "catena/core/graph.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "catena/autograd/grad_mode.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/optimizers/ada_delta.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/rmsprop_graves.h"
#include "catena/optimizers/sgd.h"
#include "catena/optimizers/smorms3.h"
#include "catena/testing_markers.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

namespace F = catena::functions;

constexpr int kSteps = 50;

struct Small : FunctionSet {
  F::Linear l1, l2;
  Small() : l1(6, 16, with_values(16, 6)), l2(16, 3, with_values(3, 16)) {}
  CATENA_FUNCTIONS(l1, l2)
  static F::LinearOptions with_values(int64_t out, int64_t in) {
    F::LinearOptions options;
    options.initialW = catena::testing::Pair::values({out, in}, dtype::float32, -0.3);
    return options;
  }
};

std::unique_ptr<Optimizer> make_rule(int rule) {
  if (rule == 0) return std::make_unique<SGD>(0.05);
  if (rule == 1) return std::make_unique<MomentumSGD>(0.05);
  if (rule == 2) return std::make_unique<Adam>(0.05);
  if (rule == 3) return std::make_unique<LARS>(0.5, LARSOptions{.trust = 0.1});
  if (rule == 4) return std::make_unique<LAMB>(0.05);
  if (rule == 5) return std::make_unique<SMORMS3>(0.05);
  if (rule == 6) return std::make_unique<AdaDelta>();
  return std::make_unique<RMSpropGraves>(0.05);
}

Array batch_x(int step) {
  return catena::testing::Pair::values({8, 6}, dtype::float32, 0.1 * step - 1);
}
Array batch_t(int step) {
  std::vector<int32_t> labels(8);
  for (int i = 0; i < 8; ++i) labels[size_t(i)] = (i + step) % 3;
  return array(labels);
}

std::vector<std::vector<double>> train(int rule, bool replay, bool groups = false) {
  const Device gpu = cuda_device(0);
  Small model;
  model.to(gpu);
  const std::unique_ptr<Optimizer> optimizer = make_rule(rule);
  if (groups) {
    optimizer->add_group("biases", {"*/b"}, {.decay = 0});
    optimizer->add_group("head", {"/l2/W"}, {.rate = 2});
  }
  optimizer->setup(model);
  optimizer->add_hook("clip", gradient_clipping(0.5));
  optimizer->add_hook("decay", weight_decay(0.001));
  const Array x = zeros({8, 6}, {dtype::float32, gpu}), t = zeros({8}, {dtype::int32, gpu});
  const auto step = [&] {
    optimizer->zero_grads();
    F::softmax_cross_entropy(model.l2(F::relu(model.l1(Variable(x)))), t).backward();
    optimizer->update();
  };
  cuda::Graph graph;
  for (int i = 0; i < kSteps; ++i) {
    x.assign(batch_x(i));
    t.assign(batch_t(i));
    if (i == 20) optimizer->set_lr(optimizer->lr() / 4);
    if (groups && i == 10) optimizer->set_group("head", {.frozen = true});
    if (groups && i == 15) optimizer->set_group("head", {.rate = 0.5});
    if (groups && i == 25) optimizer->set_group("biases", {.rate = 0.1, .decay = 3});
    if (replay && i == 3) {
      optimizer->prepare_for_capture();
      graph = cuda::Graph::capture(gpu, step);
    }
    if (graph.defined())
      graph.launch();
    else
      step();
  }
  EXPECT_EQ(optimizer->t(), kSteps);
  return catena::testing::all_values(model.parameters());
}

TEST(OptimizerGraph, ReplaysEqualEagerStepsBitForBit) {
  CATENA_NEEDS_GPU();
  for (const int rule : {0, 1, 2, 3, 4, 5, 6, 7})
    EXPECT_EQ(train(rule, true), train(rule, false)) << "rule " << rule;
}

// Numbers of groups are on the device: replays follow set_group.
TEST(OptimizerGraph, ReplaysFollowTheNumbersOfGroups) {
  CATENA_NEEDS_GPU();
  for (const int rule : {0, 1, 2, 3, 4, 5, 6, 7})
    EXPECT_EQ(train(rule, true, true), train(rule, false, true)) << "rule " << rule;
}

// The copies that the captured rule writes are right after each replay.
TEST(OptimizerGraph, ReplaysWrite16BitCopies) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const Parameter p(full({1000}, 8.0, {dtype::float32, gpu}));
  SGD sgd(0.5);
  sgd.setup({p});
  p.state()->low(dtype::bfloat16);
  p.set_grad(full({1000}, 1.0, {dtype::float32, gpu}));
  sgd.prepare_for_capture();
  cuda::Graph graph = cuda::Graph::capture(gpu, [&] { sgd.update(); });
  for (int i = 1; i <= 3; ++i) {
    graph.launch();
    EXPECT_EQ(p.state()->low_memory().to_vector<float>(), std::vector<float>(1000, 8 - 0.5f * i));
  }
}

TEST(OptimizerGraph, ReplaysCountUpdatesOfParametersWithoutElements) {
  CATENA_NEEDS_GPU();
  for (const int rule : {0, 1, 2}) {
    const Parameter none(zeros({0}, {dtype::float32, cuda_device(0)}));
    const std::unique_ptr<Optimizer> optimizer = make_rule(rule);
    optimizer->setup({none});
    optimizer->prepare_for_capture();
    cuda::Graph graph = cuda::Graph::capture(cuda_device(0), [&] { optimizer->update(); });
    for (int i = 0; i < 3; ++i) graph.launch();
    EXPECT_EQ(optimizer->t(), 3) << "rule " << rule;
    optimizer->update();
    EXPECT_EQ(optimizer->t(), 4) << "rule " << rule;
  }
}

// Replays would train memory that the model has left. What is captured anew goes on as eager steps.
TEST(OptimizerGraph, LaunchesAfterParametersMovedAreRefused) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const std::vector<std::function<void(Small&, Optimizer&)>> moves = {
      [&](Small& model, Optimizer&) { model.to(cpu(0)), model.to(gpu); },
      [](Small& model, Optimizer& optimizer) { optimizer.setup(model); },
      [](Small& model, Optimizer&) { SGD(0.1).setup(model); },
  };
  for (const auto& move : moves) {
    Small model;
    model.to(gpu);
    Adam optimizer(0.05);
    optimizer.setup(model);
    const Array x = batch_x(0).to(gpu), t = batch_t(0).to(gpu);
    const auto backward = [&] {
      optimizer.zero_grads();
      F::softmax_cross_entropy(model.l2(model.l1(Variable(x))), t).backward();
    };
    const auto step = [&] { backward(), optimizer.update(); };
    for (int i = 0; i < 3; ++i) step();
    optimizer.prepare_for_capture();
    const std::vector<std::function<void()>> steps = {step, backward, [&] { optimizer.update(); },
                                                      [&] {
                                                        const NoBackprop no_graph;
                                                        model.l1(Variable(x));
                                                      }};
    std::vector<cuda::Graph> graphs;
    for (const auto& one : steps) graphs.push_back(cuda::Graph::capture(gpu, one));
    for (cuda::Graph& graph : graphs) graph.launch();
    move(model, optimizer);
    for (cuda::Graph& graph : graphs)
      expect_contains(error_of<Error>([&] { graph.launch(); }),
                      {"Graph::launch: parameter '/l", "capture the step again"});
    optimizer.settle_layout();
    optimizer.prepare_for_capture();
    graphs = {cuda::Graph::capture(gpu, step)};
    const Array before = model.l1.W.data().to_cpu().copy();
    graphs[0].launch();
    EXPECT_NE(model.l1.W.data().to_cpu().to_vector<float>(), before.to_vector<float>());
  }
}

TEST(OptimizerGraph, SettersAreRefusedDuringACapture) {
  CATENA_NEEDS_GPU();
  Small model;
  model.to(cuda_device(0));
  SGD sgd(0.1);
  sgd.setup(model);
  EXPECT_THROW(cuda::Graph::capture(cuda_device(0), [&] { sgd.set_lr(0.2); }), ValueError);
}

// A rule by parameters, with what the host has.
class ByParameters final : public Optimizer {
 public:
  explicit ByParameters(bool reads_step) : Optimizer("lr", 1), reads_step_(reads_step) {}
  void update_one(const Array& p, const Array& g, const Arrays&) override {
    subtract(p, multiply(g, lr() * double(reads_step_ ? step() : 1)), p);
  }

 private:
  bool reads_step_;
};

TEST(Graph, NumbersOfTheHostMustNotChangeForRulesByParameters) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  for (const bool reads_step : {false, true}) {
    const Parameter p(full({1}, 8.0, {dtype::float32, gpu}));
    ByParameters rule(reads_step);
    rule.setup({p});
    rule.prepare_for_capture();
    p.set_grad(full({1}, 1.0, {dtype::float32, gpu}));
    rule.update();
    const auto capture = [&] { return cuda::Graph::capture(gpu, [&] { rule.update(); }); };
    if (reads_step) {
      expect_contains(error_of<ValueError>(capture), {"update_one reads step()"});
      continue;
    }
    cuda::Graph graph = capture();
    graph.launch();
    rule.set_lr(2);
    expect_contains(error_of<ValueError>([&] { graph.launch(); }), {"capture the step anew"});
    graph = capture();
    graph.launch();
    EXPECT_EQ(p.data().item<double>(), 8 - 1 - 1 - 2);
  }
}

TEST(Graph, ARefusedRateIsNotKept) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const Parameter p(full({1}, 8.0, {dtype::float32, gpu}));
  SGD sgd(1.0);
  sgd.setup({p});
  sgd.prepare_for_capture();
  p.set_grad(full({1}, 1.0, {dtype::float32, gpu}));
  sgd.update();
  cuda::Graph graph = cuda::Graph::capture(gpu, [&] {
    EXPECT_THROW(sgd.set_lr(2.0), ValueError);
    EXPECT_THROW(sgd.set_lr(1.0), ValueError);  // a later replay would not follow a schedule either
    sgd.update();
  });
  EXPECT_EQ(sgd.lr(), 1.0);
  sgd.set_lr(2.0);
  graph.launch();
  EXPECT_EQ(p.data().item<double>(), 8 - 1 - 2);
}

}  // namespace
}  // namespace catena::optimizers
