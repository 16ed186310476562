// feed_forward beside the functions that it is made of; it has records, too.
#include "catena/functions/connection/feed_forward.h"

#include <map>
#include <string>

#include "catena/array/manipulation.h"
#include "catena/autograd/autocast.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/parameter.h"
#include "catena/core/graph.h"
#include "catena/functions/activation/elementwise.h"
#include "catena/functions/attention/transformer.h"
#include "catena/functions/connection/linear.h"
#include "catena/optimizers/sgd.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using Activation = F::TransformerActivation;
constexpr Activation kActivations[] = {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh};

Variable activated(const Variable& x, Activation activation) {
  return activation == Activation::kRelu   ? F::relu(x)
         : activation == Activation::kGelu ? F::gelu(x)
                                           : F::gelu_tanh(x);
}

// Operands, in the order of the call.
struct Operands {
  std::vector<Parameter> p;
  Array gy;
  Operands(const Arrays& arrays)
      : gy(random_array({arrays[0].shape()[0], arrays[3].shape()[0]}, -1, 1, arrays[0].dtype(),
                        arrays[0].device(), 9)) {
    for (const Array& a : arrays) p.emplace_back(a.copy());
  }
  Variable fused(Activation activation) const {
    return F::feed_forward(p[0], p[1], p[2], p[3], p[4], {.activation = activation});
  }
  Variable composed(Activation activation) const {
    return F::linear(activated(F::linear(p[0], p[1], p[2]), activation), p[3], p[4]);
  }
  // y, and the gradients of the operands after `times` backward passes.
  Arrays run(bool is_fused, Activation activation, int times = 1) const {
    for (const Parameter& each : p) each.zero_grad();
    Variable y;
    for (int i = 0; i < times; ++i) {
      y = is_fused ? fused(activation) : composed(activation);
      y.set_grad(gy.astype(y.dtype(), false));
      y.backward();
    }
    Arrays results{y.data().copy()};
    for (const Parameter& each : p) results.push_back(each.grad().copy());
    return results;
  }
};

class FeedForward : public OnDevice {
 protected:
  // Of (rows, in), (rows, inner) and (rows, out).
  Arrays draw_operands(int64_t rows, int64_t in, int64_t inner, int64_t out, Dtype dtype) const {
    return {draw({rows, in}, -1, 1, 1, dtype), draw({inner, in}, -1, 1, 2, dtype),
            draw({inner}, -1, 1, 3, dtype), draw({out, inner}, -1, 1, 4, dtype),
            draw({out}, -1, 1, 5, dtype)};
  }
  // Bit for bit on CPUs. On GPUs an activation may be part of a product, of numbers that are not
  // rounded yet; a number may then have another rounding each time that it is stored.
  void expect_same(const Arrays& got, const Arrays& expected, Dtype dtype) const {
    const double units = dtype == Dtype::kBFloat16  ? 0x1p-8
                         : dtype == Dtype::kFloat16 ? 0x1p-11
                                                    : 1e-6;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double largest = amax(absolute(expected[i].astype(Dtype::kFloat64))).item<double>(),
                   error = device().is_cpu() ? 0 : 4 * units * largest;
      EXPECT_EQ(testing::difference(got[i], expected[i], error, 0), "") << "array " << i;
    }
  }
};

// Rows of whole packs of 16 bytes and others; gradients over what is there, and on top of it.
TEST_P(FeedForward, IsTheFunctionsThatItIsMadeOf) {
  struct Sizes {
    int64_t rows, in, inner, out;
  };
  for (const Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32, Dtype::kBFloat16, Dtype::kFloat16})
    for (const Sizes& s : {Sizes{40, 24, 32, 16}, {37, 19, 33, 5}})
      for (const Activation activation : kActivations) {
        SCOPED_TRACE(message(dtype, " inner ", s.inner, " activation ", int(activation)));
        const Operands operands(draw_operands(s.rows, s.in, s.inner, s.out, dtype)),
            same = operands;
        for (const int times : {1, 2}) {
          const Arrays expected = same.run(false, activation, times);
          expect_same(operands.run(true, activation, times), expected, dtype);
        }
      }
}

TEST_P(FeedForward, TakesViewsAndKeepsLeadingAxes) {
  const Arrays a = draw_operands(6, 8, 16, 4, Dtype::kFloat32);
  const Variable x(a[0].reshape({2, 3, 8})), view(transposed_layout(x.data()));
  const auto run = [&](const Variable& in, const Array& b1) {
    const Variable y = F::feed_forward(in, transposed_layout(a[1]), b1, padded(a[3]), padded(a[4]));
    y.set_grad(draw({2, 3, 4}, -1, 1, 7, Dtype::kFloat32));
    y.backward();
    return y.data();
  };
  EXPECT_EQ(testing::difference(run(view, padded(a[2])), run(x, a[2]), 1e-6, 1e-6), "");
  EXPECT_EQ(testing::difference(view.grad(), x.grad(), 1e-6, 1e-6), "");
}

// float32 parameters: products and what is between them in 16 bits, gradients in float32.
TEST_P(FeedForward, IsCastInAnAutocastScope) {
  const Arrays arrays = draw_operands(24, 16, 32, 8, Dtype::kFloat32);
  const auto run = [&](bool fused) {
    const AutocastScope scope(dtype::bfloat16);
    return Operands(arrays).run(fused, Activation::kGeluTanh);
  };
  const Arrays got = run(true), expected = run(false);
  EXPECT_EQ(got[0].dtype(), dtype::bfloat16);
  for (size_t i = 1; i < got.size(); ++i) EXPECT_EQ(got[i].dtype(), dtype::float32);
  expect_same(got, expected, Dtype::kBFloat16);
}

// What a gradient reads is kept where the forward pass knew that it is wanted.
TEST_P(FeedForward, ParametersThatAreUnfrozenTooLate) {
  const DeviceScope scope(device());
  for (const bool first : {false, true}) {
    F::Linear a(8, 16, {.dtype = Dtype::kFloat64}), b(16, 4, {.dtype = Dtype::kFloat64});
    F::Linear& late = first ? a : b;
    optimizers::SGD rule;
    rule.setup(late);
    rule.freeze(late.W);
    rule.freeze(late.b);
    const Variable y =
        F::feed_forward(draw({5, 8}), a.W, a.b, b.W, b.b, {.activation = Activation::kGelu});
    rule.unfreeze(late.W);
    EXPECT_THROW(F::sum(y).backward(), GradientError) << first;
  }
}

// W1 and W2 are one parameter, b1 and b2 another one.
TEST_P(FeedForward, AddsGradientsOfSharedParameters) {
  const Array x = draw({5, 8}), W = draw({8, 8}, -1, 1, 1), b = draw({8}, -1, 1, 2);
  const auto run = [&](bool fused) {
    const Parameter w(W.copy()), c(b.copy());
    const Variable y =
        fused ? F::feed_forward(x, w, c, w, c) : F::linear(F::relu(F::linear(x, w, c)), w, c);
    F::sum(y * y).backward();
    return Arrays{w.grad().copy(), c.grad().copy()};
  };
  const Arrays got = run(true), expected = run(false);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(testing::difference(got[i], expected[i], 1e-12, 1e-12), "");
}

// How often each function is called.
struct Calls : FunctionHook {
  std::map<std::string, int> of;
  void forward_ends(const FunctionCall& call) override { ++of[call.name()]; }
};

TEST_P(FeedForward, IsPartOfLayersThatDropNothing) {
  const DeviceScope scope(device());
  F::TransformerEncoderLayer layer(
      8, 2, {.inner = 16, .dropout = 0.5, .activation = Activation::kGeluTanh, .pre_norm = true});
  layer.eval();
  const Variable x(draw({2, 3, 8}, -1, 1, 1, Dtype::kFloat32)),
      h = x + layer.self_attn(layer.norm1(x)), in = layer.norm2(h);
  const auto expected = [&] { return h + layer.linear2(F::gelu_tanh(layer.linear1(in))); };
  EXPECT_EQ(testing::difference(layer(x).data(), expected().data(), 1e-6, 1e-6), "");
  const auto calls = [&](const char* name) {
    Calls seen;
    const FunctionHookScope hook(seen);
    layer(x);
    return seen.of[name];
  };
  EXPECT_EQ(calls("FeedForward"), 1);
  layer.train();
  EXPECT_EQ(calls("FeedForward"), 0);
  EXPECT_EQ(calls("Dropout"), 3);
  layer.eval();
  // One of two biases is left.
  layer.linear2 = F::Linear(16, 8, {.nobias = true, .initialW = layer.linear2.W.data()});
  EXPECT_EQ(testing::difference(layer(x).data(), expected().data(), 1e-6, 1e-6), "");
}

TEST_P(FeedForward, IsTheSameInACapturedGraph) {
  if (device().is_cpu()) GTEST_SKIP() << "SKIPPED: graphs are of GPUs";
  const DeviceScope scope(device());
  const Operands operands(draw_operands(64, 32, 64, 32, Dtype::kBFloat16));
  const Arrays eager = operands.run(true, Activation::kGeluTanh);
  Arrays recorded;
  cuda::Graph graph =
      cuda::Graph::capture(device(), [&] { recorded = operands.run(true, Activation::kGeluTanh); });
  for (int replay = 0; replay < 2; ++replay) {
    graph.launch();
    for (size_t i = 0; i < eager.size(); ++i)
      EXPECT_EQ(testing::difference(recorded[i], eager[i]), "") << i;
  }
}

CATENA_ON_DEVICES(FeedForward);

}  // namespace
}  // namespace catena
