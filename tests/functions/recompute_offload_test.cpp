// recompute whose inputs and kept results are on the host until backward: equal bits, less device
// memory. tests/functions/host_copies.cpp has the order of copies.
#include "catena/autograd/autocast.h"
#include "catena/core/graph.h"
#include "catena/core/memory.h"
#include "catena/functions/array.h"
#include "catena/functions/attention/transformer.h"
#include "catena/functions/recompute_plan.h"
#include "deterministic_scope.h"
#include "functions_test_util.h"

namespace catena {
namespace {

struct Stack : FunctionSet {
  explicit Stack(int64_t width, int count) {
    for (int i = 0; i < count; ++i)
      layers.emplace_back(
          width, 2, F::TransformerOptions{.inner = 4 * width, .dropout = 0.1, .pre_norm = true});
  }
  std::vector<F::TransformerEncoderLayer> layers;
  CATENA_FUNCTIONS(layers)

  std::vector<F::RecomputedBlock> blocks() const {
    std::vector<F::RecomputedBlock> all;
    for (const F::TransformerEncoderLayer& layer : layers)
      all.emplace_back([&layer](const Variable& h) { return layer(h, {.causal = true}); });
    return all;
  }
};

std::vector<double> values(const Array& a) {
  return a.astype(dtype::float64).reshape({-1}).to_vector<double>();
}

using Numbers = std::vector<std::vector<double>>;

// Of `passes` backward passes over one graph.
Numbers train(const F::RecomputeOptions& options, Dtype low, int passes = 1) {
  random::seed(3);
  Stack stack(16, 4);
  F::RecomputePlan plan(options);
  const Variable x(random::normal({2, 7, 16}, 0, 1, dtype::float32));
  Numbers numbers;
  for (int step = 0; step < 2; ++step) {
    stack.zero_grads();
    std::optional<AutocastScope> autocast;
    if (low != Dtype::kFloat32) autocast.emplace(low);
    const Variable loss = F::sum(F::square(plan(stack.blocks(), F::tanh(x))));
    for (int pass = 0; pass < passes; ++pass) loss.backward();
    numbers.push_back(values(loss.data()));
    numbers.push_back(values(x.grad()));
    for (const Parameter& p : stack.parameters()) numbers.push_back(values(p.grad()));
  }
  return numbers;
}

class RecomputeOffload : public OnDevice {
  const DeterministicScope equal_bits_;
};

TEST_P(RecomputeOffload, GivesEqualBits) {
  const DeviceScope scope(device());
  for (const Keep keep : {Keep::kNothing, Keep::kAttention, Keep::kProducts})
    for (const Dtype low : {Dtype::kFloat32, Dtype::kBFloat16})
      for (const int passes : {1, 2}) {
        SCOPED_TRACE(message(int(keep), " ", low, " ", passes));
        EXPECT_EQ(train({.keep = keep, .offload = true}, low, passes),
                  train({.keep = keep}, low, passes));
      }
}

// Inputs of several kinds: computed, given twice, leaves, constants; parts within parts; views.
TEST_P(RecomputeOffload, TakesAnyInputs) {
  const DeviceScope scope(device());
  const auto run = [&](bool offload) {
    const F::RecomputeOptions options{.offload = offload};
    const Variable leaf(draw({4, 6}, -1, 1, 1, Dtype::kFloat32));
    const Variable computed = F::transpose(F::tanh(leaf));
    const Array mask = draw({6, 4}, 0, 1, 2, Dtype::kFloat32);
    const auto f = [options](const Variables& in) {
      const Variable inner =
          F::recompute([](const Variable& v) { return F::exp(F::sin(v)); }, options, in[0] * in[3]);
      return Variables{inner * in[1], F::sin(in[2]) + in[1]};
    };
    const Variables ys =
        F::recompute(f, options, Variables{computed, computed, F::transpose(leaf), mask});
    F::sum(ys[0] * ys[1]).backward();
    return values(leaf.grad());
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_P(RecomputeOffload, OfAGraphThatIsDroppedLeavesNothing) {
  if (device().is_cpu()) GTEST_SKIP() << "a CPU keeps nothing elsewhere";
  const DeviceScope scope(device());
  const auto in_use = [] { return pinned_memory_statistics().in_use; };
  train({.offload = true}, Dtype::kFloat32);
  synchronize(device());
  free_all_pinned_blocks();
  const size_t before = in_use();
  {
    Stack stack(16, 4);
    F::RecomputePlan plan({.offload = true});
    const Variable y = plan(stack.blocks(), F::tanh(Variable(ones({2, 7, 16}, dtype::float32))));
    EXPECT_GT(in_use(), before);
  }
  EXPECT_EQ(in_use(), before);
}

// Also where the host is far ahead of the device.
TEST_P(RecomputeOffload, TakesLessDeviceMemory) {
  if (device().is_cpu()) GTEST_SKIP() << "a CPU keeps nothing elsewhere";
  const DeviceScope scope(device());
  constexpr int64_t kWidth = 256, kTokens = 4096;
  constexpr size_t kInput = size_t(kWidth * kTokens) * 4;
  Stack stack(kWidth, 24);
  const auto peak = [&](const F::RecomputeOptions& options) {
    size_t bytes = 0;
    for (int step = 0; step < 2; ++step) {
      F::RecomputePlan plan(options);
      stack.zero_grads();
      reset_peak_memory(device());
      const Variable x(random::normal({8, kTokens / 8, kWidth}, 0, 1, dtype::float32));
      F::sum(F::square(plan(stack.blocks(), F::tanh(x)))).backward();
      bytes = memory_statistics(device()).peak_in_use;
    }
    return bytes;
  };
  for (const Keep keep : {Keep::kNothing, Keep::kAttention}) {
    const size_t there = peak({.keep = keep}), here = peak({.keep = keep, .offload = true});
    const size_t each = keep == Keep::kNothing ? kInput : 2 * kInput;
    EXPECT_LT(here + 18 * each, there) << int(keep);
  }
}

TEST_P(RecomputeOffload, IsRefusedInACapture) {
  if (device().is_cpu()) GTEST_SKIP() << "graphs are of GPUs";
  const DeviceScope scope(device());
  const Variable x = F::tanh(Variable(ones({8}, dtype::float32)));
  const auto capture = [&] {
    cuda::Graph::capture(device(), [&] {
      F::recompute([](const Variable& v) { return F::tanh(v); }, {.offload = true}, x);
    });
  };
  expect_contains(error_of<ValueError>(capture), {"while a graph is captured", "without a graph"});
}

TEST(RecomputeOffloadOptions, ExcludeABudgetAndEverything) {
  const Variable x(ones({2}, dtype::float32));
  const auto run = [&](const F::RecomputeOptions& options) {
    return error_of<ValueError>(
        [&] { F::recompute([](const Variable& v) { return F::tanh(v); }, options, x); });
  };
  expect_contains(run({.budget = 1 << 20, .offload = true}), {"Recompute: a budget", "offload"});
  expect_contains(run({.keep = Keep::kEverything, .offload = true}),
                  {"Recompute: with keep = kEverything", "nothing is offloaded"});
  F::RecomputePlan plan({.budget = 1 << 20, .offload = true});
  expect_contains(
      error_of<ValueError>([&] { plan({[](const Variable& v) { return F::tanh(v); }}, x); }),
      {"a budget", "offload"});
}

CATENA_ON_DEVICES(RecomputeOffload);

}  // namespace
}  // namespace catena
