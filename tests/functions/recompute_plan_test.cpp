// RecomputePlan: choices for budgets, the bytes that they keep, and equal bits.
#include "catena/functions/recompute_plan.h"

#include "catena/core/memory_profile.h"
#include "catena/functions/attention/transformer.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "deterministic_scope.h"
#include "functions_test_util.h"

namespace catena {
namespace {

constexpr int64_t kBatch = 2, kLength = 64, kSize = 64;
constexpr size_t kResult = kBatch * kLength * kSize * 4;  // bytes of a block's result

struct Model : FunctionSet {
  Model() {
    for (int i = 0; i < 3; ++i)
      layers.emplace_back(kSize, 2, F::TransformerOptions{.inner = 4 * kSize, .pre_norm = true});
  }
  std::vector<F::TransformerEncoderLayer> layers;
  F::BatchNormalization norm{kLength};
  CATENA_FUNCTIONS(layers, norm)

  // The last one moves running averages.
  std::vector<F::RecomputedBlock> blocks() const {
    std::vector<F::RecomputedBlock> all;
    for (const F::TransformerEncoderLayer& layer : layers)
      all.emplace_back([&layer](const Variable& h) { return layer(h, {.causal = true}); });
    all.emplace_back([this](const Variable& h) { return norm(h); });
    return all;
  }
};

std::vector<double> values(const Array& a) {
  return a.astype(dtype::float64).reshape({-1}).to_vector<double>();
}

struct Trained {
  std::vector<std::vector<double>> numbers;
  size_t bytes = 0;  // that the graph holds
};

Trained run(F::RecomputePlan& plan, int steps = 2) {
  random::seed(3);
  Model model;
  const Variable x(random::normal({kBatch, kLength, kSize}, 0, 1, dtype::float32));
  Trained result;
  for (int i = 0; i < steps; ++i) {
    model.zero_grads();
    const MemoryProfile profile;
    const Variable y = plan(model.blocks(), x);
    result.bytes = 0;
    for (const MemoryProfile::Entry& entry : profile.entries()) result.bytes += entry.held;
    F::sum(F::square(y)).backward();
    result.numbers.push_back(values(y.data()));
    result.numbers.push_back(values(x.grad()));
    for (const Parameter& p : model.parameters()) result.numbers.push_back(values(p.grad()));
    for (const auto& [name, p] : model.named_persistents())
      result.numbers.push_back(values(p.data()));
  }
  return result;
}

class RecomputePlan : public OnDevice {
  const DeterministicScope equal_bits_;
};

TEST_P(RecomputePlan, ChoosesTheMostThatFits) {
  const DeviceScope scope(device());
  F::RecomputePlan everything({.keep = Keep::kEverything});
  const Trained plain = run(everything);
  EXPECT_EQ(everything.kept(), std::vector(4, Keep::kEverything));
  const auto bytes_of = [&](Keep keep) {
    F::RecomputePlan uniform({.keep = keep});
    return run(uniform).bytes;
  };
  const size_t nothing = bytes_of(Keep::kNothing), attention = bytes_of(Keep::kAttention),
               products = bytes_of(Keep::kProducts), all = plain.bytes;
  EXPECT_LT(nothing, attention);
  EXPECT_LT(attention, products);
  EXPECT_LT(products, all);

  const auto expect = [&](size_t budget, std::vector<Keep> layers) {
    SCOPED_TRACE(budget);
    F::RecomputePlan plan({.budget = budget});
    const Trained again = run(plan);
    EXPECT_EQ(std::vector(plan.kept().begin(), plan.kept().begin() + 3), layers);
    ASSERT_EQ(again.numbers.size(), plain.numbers.size());
    for (size_t i = 0; i < plain.numbers.size(); ++i)
      EXPECT_EQ(again.numbers[i], plain.numbers[i]) << i;
    EXPECT_LE(again.bytes, budget);
    EXPECT_EQ(again.bytes, plan.bytes());
  };
  constexpr Keep kN = Keep::kNothing, kA = Keep::kAttention, kP = Keep::kProducts,
                 kE = Keep::kEverything;
  expect(all, {kE, kE, kE});
  expect(all - 1, {kP, kE, kE});
  expect(products + kResult, {kP, kP, kP});
  expect(products - kResult, {kA, kP, kE});  // what is left suffices for the last one
  expect(attention + kResult, {kA, kA, kA});
  expect(attention - kResult / 2, {kN, kA, kA});
  expect(4 * kResult, {kN, kN, kN});
}

TEST_P(RecomputePlan, SaysWhatTheLeastTakes) {
  const DeviceScope scope(device());
  F::RecomputePlan plan({.budget = 4 * kResult - 1});
  expect_contains(error_of<ValueError>([&] { run(plan); }),
                  {"RecomputePlan: the results of the 4 blocks alone take 131072 bytes, the budget "
                   "is 131071",
                   "raise it"});
  EXPECT_TRUE(plan.kept().empty());
}

TEST_P(RecomputePlan, MeasuresLargerInputsAgain) {
  const DeviceScope scope(device());
  const F::Linear layer(256, 256);
  F::RecomputePlan plan({.budget = 64 * 1024});
  int runs = 0;
  const std::vector<F::RecomputedBlock> blocks{[&](const Variable& h) {
    ++runs;
    return F::tanh(F::tanh(F::tanh(layer(h))));
  }};
  const auto choice = [&](int64_t rows) {
    runs = 0;
    const Variable y = plan(blocks, Variable(draw({rows, 256}, -1, 1, 0, Dtype::kFloat32)));
    return plan.kept()[0];
  };
  EXPECT_EQ(choice(16), Keep::kEverything);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(choice(16), Keep::kEverything);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(choice(32), Keep::kProducts);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(choice(64), Keep::kAttention);  // of which there is none
  EXPECT_EQ(choice(16), Keep::kAttention);
  EXPECT_EQ(runs, 1);
}

TEST_P(RecomputePlan, MeasuresNothingWithoutARecord) {
  const DeviceScope scope(device());
  F::RecomputePlan plan({.budget = 1});
  const NoBackprop off;
  const Variable y = plan({[](const Variable& h) { return h * 2.0; }}, ones({2}));
  EXPECT_EQ(y.data().to_vector<double>(), (std::vector<double>{2, 2}));
  EXPECT_TRUE(plan.kept().empty());
}

TEST_P(RecomputePlan, KeepsEverythingInsideOfRecompute) {
  const DeviceScope scope(device());
  const F::Linear layer(8, 8);
  F::RecomputePlan plan({.budget = 1 << 20});
  const Variable x(draw({2, 8}, -1, 1, 0, Dtype::kFloat32));
  const std::vector<F::RecomputedBlock> blocks{
      [&](const Variable& h) { return F::tanh(F::dropout(layer(h))); }};
  const auto gradient = [&](bool again) {
    random::seed(4);
    const auto f = [&](const Variable& h) { return plan(blocks, h); };
    F::sum(again ? F::recompute(f, {.keep = Keep::kProducts}, x) : f(x)).backward();
    return values(x.grad());
  };
  const auto again = gradient(true);
  EXPECT_TRUE(plan.kept().empty());
  EXPECT_EQ(again, gradient(false));
  EXPECT_EQ(plan.kept(), std::vector{Keep::kEverything});
}

CATENA_ON_DEVICES(RecomputePlan);

}  // namespace
}  // namespace catena
