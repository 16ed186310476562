// Whole training steps replayed as a graph equal eager ones bit for bit: forward with dropout,
// backward, clipping, update, another batch and now and then another learning rate. Needs a GPU.
#include <memory>

#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/core/graph.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/functions/noise.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing.h"
#include "gpu.h"

namespace catena {
namespace {

namespace F = functions;

constexpr int kSteps = 50, kWarmUp = 3, kNewRateAt = 20;
constexpr int64_t kBatch = 16, kFeatures = 20, kClasses = 4, kSamples = 300;

struct Network : FunctionSet {
  F::Linear l1{kFeatures, 64}, l2{64, 48}, l3{48, kClasses};
  CATENA_FUNCTIONS(l1, l2, l3)
  Variable operator()(const Variable& x) {
    return l3(F::dropout(F::relu(l2(F::dropout(F::relu(l1(x)), 0.5))), 0.2));
  }
};

enum class Rule { kSgd, kMomentum, kAdam };

std::unique_ptr<Optimizer> make_rule(Rule rule) {
  if (rule == Rule::kSgd) return std::make_unique<optimizers::SGD>(0.1);
  if (rule == Rule::kMomentum) return std::make_unique<optimizers::MomentumSGD>(0.05, 0.9);
  return std::make_unique<optimizers::Adam>(0.01);
}

struct How {
  bool replay = false;
  bool new_rate = true, clipping = true, dropout = true;
  bool in_place = false;  // the gradient in place of the scores
};

// What a run leaves behind.
struct Outcome {
  NamedArrays arrays;          // parameters, and what the optimizer keeps
  RandomState::State random;   // of the GPU's generator
  std::vector<double> losses;  // of every step
};

// Everything a step needs is on the device; a batch is what lies at the cursor in an order of
// samples, as in the MNIST programs.
class Training {
 public:
  Training(Rule rule, const How& how, Device gpu)
      : how_(how), gpu_(gpu), optimizer_(make_rule(rule)) {
    RandomState numbers(11);
    samples_ = numbers.normal({kSamples, kFeatures}, 0, 1, {dtype::float32, cpu()}).to(gpu);
    labels_ = numbers.integers({kSamples}, 0, kClasses, {dtype::int32, cpu()}).to(gpu);
    order_ = numbers.integers({kSteps * kBatch}, 0, kSamples, {dtype::int64, cpu()}).to(gpu);
    cursor_ = zeros({}, {dtype::int64, gpu});
    offsets_ = arange(0, kBatch, 1, {dtype::int64, gpu});
    loss_ = zeros({}, {dtype::float32, gpu});
    random::seed(5);
    network_ = std::make_unique<Network>();
    network_->to(gpu);
    optimizer_->setup(*network_);
    if (how.clipping) optimizer_->add_hook("clip", optimizers::gradient_clipping(0.05));
  }

  Outcome run() {
    Outcome outcome;
    cuda::Graph graph;
    for (int i = 0; i < kSteps; ++i) {
      if (how_.new_rate && i == kNewRateAt) optimizer_->set_lr(optimizer_->lr() / 10);
      if (how_.replay && i == kWarmUp) {
        optimizer_->prepare_for_capture();
        graph = cuda::Graph::capture(gpu_, [this] { step(); });
      }
      graph.defined() ? graph.launch() : step();
      outcome.losses.push_back(loss_.item<double>());
    }
    EXPECT_EQ(optimizer_->t(), kSteps);
    EXPECT_EQ(cursor_.item<int64_t>(), kSteps * kBatch);
    for (const auto& [path, parameter] : network_->named_parameters())
      outcome.arrays.emplace_back(path, parameter.data().copy());
    for (const auto& [name, array] : optimizer_->state())
      outcome.arrays.emplace_back("optimizer/" + name, array.copy());
    outcome.random = random::default_state(gpu_).state();
    return outcome;
  }

 private:
  void step() {
    const Array positions = take(order_, offsets_ + cursor_, 0, OutOfRange::kClip);
    const Array x = take(samples_, positions, 0, OutOfRange::kClip);
    const Array t = take(labels_, positions, 0, OutOfRange::kClip);
    optimizer_->zero_grads();
    const Variable y = how_.dropout ? (*network_)(x)
                                    : network_->l3(F::relu(network_->l2(F::relu(network_->l1(x)))));
    const Variable loss = F::softmax_cross_entropy(y, t, {.gradient_in_place = how_.in_place});
    loss.backward();
    optimizer_->update();
    loss_.assign(loss.data());
    cursor_ += kBatch;
  }

  How how_;
  Device gpu_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Optimizer> optimizer_;
  Array samples_, labels_, order_, cursor_, offsets_, loss_;
};

Outcome train(Rule rule, const How& how) { return Training(rule, how, cuda_device(0)).run(); }

class ReplayTest : public ::testing::TestWithParam<Rule> {};

void expect_equal(const Outcome& replayed, const Outcome& eager) {
  EXPECT_EQ(replayed.losses, eager.losses);
  ASSERT_EQ(replayed.arrays.size(), eager.arrays.size());
  EXPECT_GE(eager.arrays.size(), 6u);
  for (size_t i = 0; i < eager.arrays.size(); ++i) {
    const auto& [name, array] = eager.arrays[i];
    EXPECT_EQ(replayed.arrays[i].first, name);
    EXPECT_EQ(testing::difference(replayed.arrays[i].second, array), "") << name;
  }
  EXPECT_EQ(replayed.random.seed, eager.random.seed);
  EXPECT_EQ(replayed.random.offset, eager.random.offset) << "random numbers drawn";
}

TEST_P(ReplayTest, FiftyReplayedStepsEqualEagerOnesBitForBit) {
  CATENA_NEEDS_GPUS(1);
  expect_equal(train(GetParam(), {.replay = true}), train(GetParam(), {}));
}
TEST_P(ReplayTest, SoDoThoseWithTheGradientInPlaceOfTheScores) {
  CATENA_NEEDS_GPUS(1);
  expect_equal(train(GetParam(), {.replay = true, .in_place = true}),
               train(GetParam(), {.in_place = true}));
}

// The comparison above means something: each ingredient changes the result.
TEST_P(ReplayTest, EachIngredientMatters) {
  CATENA_NEEDS_GPUS(1);
  const auto weights = [&](const How& how) { return train(GetParam(), how).arrays.front().second; };
  const Array full = weights({.replay = true});
  EXPECT_NE(testing::difference(weights({.replay = true, .new_rate = false}), full), "");
  EXPECT_NE(testing::difference(weights({.replay = true, .clipping = false}), full), "");
  EXPECT_NE(testing::difference(weights({.replay = true, .dropout = false}), full), "");
}
INSTANTIATE_TEST_SUITE_P(Rules, ReplayTest,
                         ::testing::Values(Rule::kSgd, Rule::kMomentum, Rule::kAdam));

TEST(ReplayRandomTest, EachLaunchDrawsTheNextNumbers) {
  CATENA_NEEDS_GPUS(1);
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  random::seed(9);
  std::vector<Array> expected;
  for (int i = 0; i < 4; ++i) expected.push_back(random::uniform({100}, 0, 1, dtype::float32));
  EXPECT_NE(testing::difference(expected[0], expected[1]), "");
  random::seed(9);
  Array drawn;
  cuda::Graph graph =
      cuda::Graph::capture(gpu, [&] { drawn = random::uniform({100}, 0, 1, dtype::float32); });
  for (int i = 0; i < 2; ++i) {
    graph.launch();
    EXPECT_EQ(testing::difference(drawn, expected[size_t(i)]), "") << "launch " << i;
  }
  // Eager numbers in between are part of the same stream.
  EXPECT_EQ(testing::difference(random::uniform({100}, 0, 1, dtype::float32), expected[2]), "");
  graph.launch();
  EXPECT_EQ(testing::difference(drawn, expected[3]), "");
}

// Forward and backward of one launch drop the same elements.
TEST(ReplayRandomTest, EachLaunchDropsOtherElements) {
  CATENA_NEEDS_GPUS(1);
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  const Variable x(ones({1003}, {dtype::float32, gpu}));
  Array y;
  const auto step = [&] {
    const Variable dropped = F::dropout(x, 0.5);
    dropped.set_grad(x.data());
    dropped.backward();
    y = dropped.data();
  };
  random::seed(9);
  std::vector<Array> expected;
  for (int i = 0; i < 2; ++i) {
    step();
    expected.push_back(y);
  }
  EXPECT_NE(testing::difference(expected[0], expected[1]), "");
  random::seed(9);
  cuda::Graph graph = cuda::Graph::capture(gpu, step);
  for (int i = 0; i < 2; ++i) {
    graph.launch();
    EXPECT_EQ(testing::difference(y, expected[size_t(i)], 0, 0), "") << "launch " << i;
    EXPECT_EQ(testing::difference(x.grad(), y, 0, 0), "") << "launch " << i;
  }
}

TEST(ReplayRandomTest, LaunchesFollowASeedGivenAfterTheCapture) {
  CATENA_NEEDS_GPUS(1);
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  const auto draw = [] { return random::uniform({100}, 0, 1, dtype::float32); };
  random::seed(7);
  const Array first = draw(), second = draw();
  random::seed(9);
  Array drawn;
  cuda::Graph graph = cuda::Graph::capture(gpu, [&] { drawn = draw(); });
  graph.launch();
  EXPECT_NE(testing::difference(drawn, first), "");
  random::seed(7);
  graph.launch();
  EXPECT_EQ(testing::difference(drawn, first), "");
  const RandomState::State here = random::default_state(gpu).state();
  random::seed(9);
  graph.launch();
  random::default_state(gpu).set_state(here);
  graph.launch();
  EXPECT_EQ(testing::difference(drawn, second), "");
}

}  // namespace
}  // namespace catena
