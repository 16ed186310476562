// recompute that keeps results of products and attention: equal bits, no product again, and the
// bytes that are promised.
#include "catena/autograd/autocast.h"
#include "catena/autograd/function_call.h"
#include "catena/core/memory_profile.h"
#include "catena/functions/array.h"
#include "catena/functions/attention/transformer.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/deconvolution_2d.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "catena/functions/recompute.h"
#include "deterministic_scope.h"
#include "functions_test_util.h"

namespace catena {
namespace {

constexpr Keep kAll[] = {Keep::kNothing, Keep::kAttention, Keep::kProducts, Keep::kEverything};

// What calls multiply and add.
struct Work : FunctionHook {
  void forward_ends(const FunctionCall& call) override {
    const int64_t own = call.work().value_or(0);
    all += own;
    if (std::string_view(call.name()) == "ScaledDotProductAttention") of_attention += own;
  }
  int64_t all = 0, of_attention = 0;
};

std::vector<double> values(const Array& a) {
  return a.astype(dtype::float64).reshape({-1}).to_vector<double>();
}

// What a step leaves behind, and what its passes multiply.
struct Step {
  std::vector<std::vector<double>> numbers;
  Work forward, backward;
};

// Of sum(f(x)^2), from equal random numbers.
template <class Function>
Step step_of(const Function& f, Parameterized& model, const Array& input, Keep keep) {
  random::seed(5);
  model.zero_grads();
  const Variable x(input);
  Step step;
  Variable loss;
  {
    const FunctionHookScope hook(step.forward);
    const Variable y = F::recompute(f, {.keep = keep}, x);
    loss = F::sum(F::square(y));
  }
  {
    const FunctionHookScope hook(step.backward);
    loss.backward();
  }
  step.numbers = {values(loss.data()), values(x.grad())};
  for (const Parameter& p : model.parameters()) step.numbers.push_back(values(p.grad()));
  step.numbers.push_back(values(random::normal({2}, 0, 1, {Dtype::kFloat64, input.device()})));
  return step;
}

template <class Function>
void expect_equal_bits(const Function& f, Parameterized& model, const Array& input) {
  const Step plain = step_of(f, model, input, Keep::kEverything);
  EXPECT_GT(plain.forward.all, 0);
  EXPECT_EQ(plain.backward.all, 0);
  for (const Keep keep : kAll) {
    SCOPED_TRACE(int(keep));
    const Step again = step_of(f, model, input, keep);
    ASSERT_EQ(again.numbers.size(), plain.numbers.size());
    for (size_t i = 0; i < plain.numbers.size(); ++i) EXPECT_EQ(again.numbers[i], plain.numbers[i]);
    EXPECT_EQ(again.forward.all, plain.forward.all);
    const int64_t all = plain.forward.all, of_attention = plain.forward.of_attention;
    EXPECT_EQ(again.backward.all, keep == Keep::kNothing     ? all
                                  : keep == Keep::kAttention ? all - of_attention
                                                             : 0);
  }
}

class RecomputeKeep : public OnDevice {
  const DeterministicScope equal_bits_;
};

TEST_P(RecomputeKeep, GivesEqualBitsOfTransformers) {
  const DeviceScope scope(device());
  using Activation = F::TransformerActivation;
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16})
    for (const double dropout : {0.0, 0.3})
      for (const Activation activation :
           {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh}) {
        if (device().is_cuda() && dtype == Dtype::kBFloat16 && activation == Activation::kGeluTanh)
          continue;  // GELU of numbers that are not rounded yet: recompute.h
        SCOPED_TRACE(message(dtype, " ", dropout, " ", int(activation)));
        random::seed(1);
        F::TransformerEncoderLayer layer(16, 2,
                                         {.inner = 32,
                                          .dropout = dropout,
                                          .activation = activation,
                                          .pre_norm = true,
                                          .groups = 1,
                                          .rotary = F::RotaryOptions(),
                                          .dtype = dtype});
        expect_equal_bits([&](const Variable& v) { return layer(v, {.causal = true}); }, layer,
                          draw({2, 7, 16}, -1, 1, 0, dtype));
      }
}

TEST_P(RecomputeKeep, GivesEqualBitsUnderAutocast) {
  const DeviceScope scope(device());
  random::seed(1);
  F::TransformerEncoderLayer layer(
      16, 2, {.inner = 32, .dropout = 0, .activation = F::TransformerActivation::kGelu});
  const AutocastScope low(dtype::bfloat16);
  expect_equal_bits([&](const Variable& v) { return layer(v); }, layer,
                    draw({2, 7, 16}, -1, 1, 0, Dtype::kFloat32));
}

struct Pictures : FunctionSet {
  F::Convolution2D c1{3, 4, 3, {.pad = 1}};
  F::Deconvolution2D c2{4, 3, 3, {.pad = 1}};
  F::BatchNormalization b1{4};
  CATENA_FUNCTIONS(c1, c2, b1)
  Variable operator()(const Variable& x) const { return F::tanh(c2(b1.relu(c1(x)))); }
};

TEST_P(RecomputeKeep, GivesEqualBitsOfConvolutions) {
  const DeviceScope scope(device());
  Pictures model;
  expect_equal_bits([&](const Variable& v) { return model(v); }, model,
                    draw({2, 3, 6, 5}, -1, 1, 0, Dtype::kFloat32));
}

// Functions by themselves.
TEST_P(RecomputeKeep, CallsNoProductAgain) {
  const DeviceScope scope(device());
  F::Linear layer(6, 6), inner(6, 6);
  const auto expect = [&](auto f, const Shape& shape) {
    expect_equal_bits(f, layer, draw(shape, -1, 1, 0, Dtype::kFloat32));
  };
  using V = const Variable&;
  expect([&](V v) { return F::tanh(layer(v)); }, {4, 6});
  expect([&](V v) { return F::square(layer.relu(v)); }, {4, 6});
  expect([&](V v) { return F::exp(F::matmul(F::tanh(layer(v)), v, true, false)); }, {4, 6});
  expect([&](V v) { return F::sin(F::matmul(layer(v), layer.W, false, true)); }, {2, 4, 6});
  expect([&](V v) { return F::sin(F::batch_matmul(layer(v), v, false, true)); }, {2, 4, 6});
  expect([&](V v) { return F::feed_forward(F::tanh(v), layer.W, inner.W); }, {2, 4, 6});
  // Without the gradient of the second weights what they read is not made again.
  expect(
      [&](V v) {
        return F::feed_forward(v, layer.W, layer.b, inner.W.data(), inner.b.data(),
                               {.activation = F::TransformerActivation::kGelu});
      },
      {4, 6});
}

TEST_P(RecomputeKeep, KeepsThePromisedBytes) {
  const DeviceScope scope(device());
  constexpr int64_t kBatch = 4, kLength = 64, kSize = 128, kHeads = 2;
  F::TransformerEncoderLayer layer(kSize, kHeads,
                                   {.inner = 4 * kSize,
                                    .dropout = 0,
                                    .activation = F::TransformerActivation::kGelu,
                                    .pre_norm = true});
  const Variable x(draw({kBatch, kLength, kSize}, -1, 1, 0, Dtype::kFloat32));
  const auto kept = [&](Keep keep) {
    const MemoryProfile profile;
    const Variable y = F::recompute([&](const Variable& v) { return layer(v); }, {.keep = keep}, x);
    double bytes = 0;
    for (const MemoryProfile::Entry& entry : profile.entries()) bytes += double(entry.held);
    F::sum(y).backward();
    return bytes;
  };
  const double numbers = 4.0 * kBatch * kLength;  // bytes of a column
  const double nothing = numbers * kSize;         // the result
  const double attention = nothing + numbers * (kSize + 2 * kHeads);
  // Projections to q, k and v and behind attention; what goes into GELU, and the last product.
  const double products = attention + numbers * kSize * (3 + 1 + 4 + 1);
  EXPECT_NEAR(kept(Keep::kNothing), nothing, 1e-2 * nothing);
  EXPECT_NEAR(kept(Keep::kAttention), attention, 1e-2 * attention);
  EXPECT_NEAR(kept(Keep::kProducts), products, 1e-2 * products);
  EXPECT_GT(kept(Keep::kEverything), 1.3 * products);
}

TEST_P(RecomputeKeep, Nests) {
  const DeviceScope scope(device());
  F::Linear first(6, 6), second(6, 6);
  const Array input = draw({4, 6}, -1, 1, 0, Dtype::kFloat32);
  const auto run = [&](Keep outer, Keep inner) {
    random::seed(5);
    first.zero_grads();
    second.zero_grads();
    const auto f = [&](const Variable& v) { return second(F::tanh(F::dropout(v, 0.3))); };
    const auto g = [&](const Variable& v) {
      return F::sin(F::recompute(f, {.keep = inner}, F::dropout(first(v), 0.3)));
    };
    const Variable x(input);
    F::sum(F::square(F::recompute(g, {.keep = outer}, x))).backward();
    return std::vector{values(x.grad()), values(first.W.grad()), values(second.W.grad())};
  };
  const auto plain = run(Keep::kEverything, Keep::kEverything);
  for (const Keep outer : kAll)
    for (const Keep inner : kAll) EXPECT_EQ(run(outer, inner), plain) << int(outer) << int(inner);
}

TEST_P(RecomputeKeep, TwoPassesAreTwice) {
  const DeviceScope scope(device());
  F::Linear layer(6, 6);
  const Variable x(draw({4, 6}, -1, 1, 0, Dtype::kFloat32));
  const Variable loss = F::sum(F::recompute([&](const Variable& v) { return F::tanh(layer(v)); },
                                            {.keep = Keep::kProducts}, x));
  loss.backward();
  const auto once = values(layer.W.grad() * 2);
  loss.backward();
  EXPECT_EQ(values(layer.W.grad()), once);
}

TEST_P(RecomputeKeep, TakesABudget) {
  const DeviceScope scope(device());
  const F::Linear layer(64, 64);
  const Variable q(draw({1, 2, 64, 64}, -1, 1, 0, Dtype::kFloat32));
  const auto f = [&](const Variable& v) {
    return F::tanh(F::scaled_dot_product_attention(layer(v), v, v));
  };
  const auto work_again = [&](size_t budget) {
    Work again;
    const Variable y = F::recompute(f, {.budget = budget}, q);
    const FunctionHookScope hook(again);
    F::sum(y).backward();
    return std::pair(again.all - again.of_attention > 0, again.of_attention > 0);
  };
  constexpr size_t kResult = 2 * 64 * 64 * 4, kNorms = 2 * 2 * 64 * 4;
  EXPECT_EQ(work_again(3 * kResult + kNorms), std::pair(false, false));
  EXPECT_EQ(work_again(3 * kResult), std::pair(true, false));
  EXPECT_EQ(work_again(2 * kResult), std::pair(true, true));
  EXPECT_EQ(work_again(kResult), std::pair(true, true));
  expect_contains(error_of<ValueError>([&] { work_again(kResult - 1); }),
                  {"Recompute", "results of f alone take 32768 bytes", "budget is 32767"});
}

// Of a second run that does something else.
TEST_P(RecomputeKeep, NamesTheCallThatCameInstead) {
  const DeviceScope scope(device());
  F::Linear layer(3, 3);
  const Variable x(draw({3, 3}, -1, 1, 0, Dtype::kFloat32));
  const auto error = [&](auto first, auto second) {
    int runs = 0;
    const auto f = [&](const Variable& v) { return runs++ == 0 ? first(v) : second(v); };
    const Variable y = F::sum(F::recompute(f, {.keep = Keep::kProducts}, x));
    return error_of<ValueError>([&] { y.backward(); });
  };
  const auto one = [&](const Variable& v) { return layer(v); };
  const auto other = [&](const Variable& v) { return F::matmul(v, v); };
  const auto rows = [&](const Variable& v) { return layer(F::get_item(v, {Slice(0, 2)})); };
  const auto none = [&](const Variable& v) { return F::tanh(v); };
  const auto two = [&](const Variable& v) { return layer(layer(v)); };
  expect_contains(error(one, other),
                  {"f called MatMul of (3, 3) float32, (3, 3) float32 when it ran again, where the "
                   "first run had Linear of (3, 3) float32, (3, 3) float32, (3,) float32, number 1 "
                   "of the 1 calls",
                   "the same both times"});
  expect_contains(error(one, rows), {"f called Linear of (2, 3) float32", "had Linear of (3, 3)"});
  expect_contains(error(one, none), {"f ended after 0 of the 1 calls", "the next is Linear of"});
  expect_contains(error(one, two), {"f called Linear of", "after all 1 calls"});
  EXPECT_EQ(error(one, one), "no error");
}

// The gradient in place of scores that are kept.
TEST_P(RecomputeKeep, RefusesResultsThatWereWrittenTo) {
  const DeviceScope scope(device());
  F::Linear layer(3, 4);
  const Array labels = zeros({2}, {Dtype::kInt32, device()});
  const Variable x(draw({2, 3}, -1, 1, 0, Dtype::kFloat32));
  const auto loss_of = [&](Keep keep) {
    const Variable scores =
        F::recompute([&](const Variable& v) { return layer(v); }, {.keep = keep}, x);
    return F::softmax_cross_entropy(scores, labels, {.gradient_in_place = true});
  };
  expect_contains(error_of<GradientError>([&] { loss_of(Keep::kProducts).backward(); }),
                  {"Recompute: the result of Linear of (2, 3) float32", "was written to"});
  EXPECT_NO_THROW(loss_of(Keep::kNothing).backward());
  // Inside it is once: the second run writes.
  const auto inside = [&](const Variable& v) {
    return F::softmax_cross_entropy(layer(v), labels, {.gradient_in_place = true});
  };
  const auto gradient = [&](Keep keep) {
    layer.zero_grads();
    F::recompute(inside, {.keep = keep}, x).backward();
    return values(layer.W.grad());
  };
  EXPECT_EQ(gradient(Keep::kProducts), gradient(Keep::kEverything));
}

CATENA_ON_DEVICES(RecomputeKeep);

}  // namespace
}  // namespace catena
