// recompute: equal bits, less memory.
#include "catena/functions/recompute.h"

#include <gtest/gtest.h>

#include "catena/array/random.h"
#include "catena/autograd/autocast.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/function_set.h"
#include "catena/autograd/grad_mode.h"
#include "catena/functions/array.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/functions/noise.h"
#include "catena/functions/normalization.h"
#include "error_text.h"

namespace catena {
namespace {

namespace F = catena::functions;

// A residual block with everything that is easily repeated wrongly.
struct Block : FunctionSet {
  F::Convolution2D c1{3, 3, 3, {.pad = 1}}, c2{3, 3, 3, {.pad = 1}};
  F::BatchNormalization b1{3}, b2{3};
  CATENA_FUNCTIONS(c1, c2, b1, b2)
  Variable operator()(const Variable& x) const {
    const Variable h = F::dropout(b1.relu(c1(x)), 0.5);
    return b2.add_relu(c2(h), x);
  }
};

struct Result {
  std::vector<std::vector<double>> values;
};

// Everything that a step leaves behind.
Result step(bool again, int depth = 3) {
  random::seed(3);
  std::vector<Block> blocks(static_cast<size_t>(depth));
  random::seed(7);
  const Variable x(random::normal({2, 3, 5, 5}, 0, 1, dtype::float32));
  Variable h = x;
  for (const Block& block : blocks) {
    if (again)
      h = F::recompute([&](const Variable& v) { return block(v); }, h);
    else
      h = block(h);
  }
  F::sum(F::square(h)).backward();
  Result r;
  const auto note = [&](const Array& a) {
    r.values.push_back(a.astype(dtype::float64).reshape({-1}).to_vector<double>());
  };
  note(h.data());
  note(x.grad());
  for (Block& block : blocks) {
    for (const Parameter& p : block.parameters()) note(p.grad());
    for (const auto& [name, p] : block.named_persistents()) note(p.data());
  }
  note(random::normal({2}));  // the state of the generator afterwards
  return r;
}

TEST(Recompute, GivesEqualBits) {
  const Result plain = step(false), again = step(true);
  ASSERT_EQ(plain.values.size(), again.values.size());
  for (size_t i = 0; i < plain.values.size(); ++i) EXPECT_EQ(plain.values[i], again.values[i]) << i;
}

TEST(Recompute, Nests) {
  random::seed(1);
  const Variable x(random::normal({4, 4}));
  const auto run = [&](int levels) {
    random::seed(2);
    const auto f = [](const Variable& v) { return F::tanh(F::dropout(v * 2, 0.3)); };
    const auto g = [&](const Variable& v) {
      return levels > 1 ? F::recompute(f, F::dropout(v)) : f(F::dropout(v));
    };
    const Variable y = levels > 0 ? F::recompute(g, x) : g(x);
    F::sum(F::square(y)).backward();
    return x.grad().to_vector<double>();
  };
  const auto plain = run(0);
  EXPECT_EQ(run(1), plain);
  EXPECT_EQ(run(2), plain);
}

// Gradients of an input meet in the same order, whatever else uses it.
TEST(Recompute, SumsInTheOrderOfAPassWithoutIt) {
  random::seed(2);
  const Variable x(random::normal({50}, 0, 1, dtype::float32));
  const auto run = [&](bool again) {
    const auto f = [](const Variable& a, const Variable& b) {
      return F::tanh(a) * 0.3 + F::sin(b) * a;
    };
    const Variable h = F::exp(x) * 0.7;
    const Variable y = (again ? F::recompute(f, h, h) : f(h, h)) + F::square(h) * h;
    F::sum(y * F::cos(h)).backward();
    return x.grad().to_vector<float>();
  };
  EXPECT_EQ(run(true), run(false));
}

// f with a reference to a local variable of this function.
[[gnu::noinline]] Variable with_dead_reference(const Variable& x, bool by_value) {
  volatile double memory = 0.5;
  const double scale = memory;
  if (by_value) return F::recompute([scale](const Variable& v) { return F::tanh(v * scale); }, x);
  return F::recompute([&scale](const Variable& v) { return F::tanh(v * scale); }, x);
}

// Below the frames of whoever begins the pass.
[[gnu::noinline]] Variable with_dead_reference_far_below(const Variable& x, int depth = 50) {
  const volatile int rest = depth;
  const Variable y =
      rest > 0 ? with_dead_reference_far_below(x, rest - 1) : with_dead_reference(x, false);
  return rest < 0 ? x : y;
}

TEST(Recompute, RefusesReferencesToWhatIsGone) {
  const Variable x(ones({3}));
  double alive = 0.5;
  F::sum(with_dead_reference(x, true)).backward();
  F::sum(F::recompute([&alive](const Variable& v) { return v * alive; }, x)).backward();
  const Variable loss = F::sum(with_dead_reference_far_below(x));
#ifndef __SANITIZE_ADDRESS__  // locals are not on the stack
  expect_contains(error_of<GradientError>([&] { loss.backward(); }),
                  {"Recompute", "local variable", "by value"});
#endif
}

TEST(Recompute, FreesWhatItComputesAgain) {
  const auto held = [](bool again) {
    const Variable x(ones({1000, 100}));
    const auto f = [](const Variable& v) {
      Variable h = v;
      for (int i = 0; i < 10; ++i) h = F::exp(h * 0.1);
      return h;
    };
    const size_t before = memory_statistics(cpu(0)).in_use;
    const Variable y = again ? F::recompute(f, x) : f(x);
    const size_t bytes = memory_statistics(cpu(0)).in_use - before;
    F::sum(y).backward();
    return bytes;
  };
  const size_t result = 1000 * 100 * sizeof(double);
  EXPECT_GE(held(false), 10 * result);
  EXPECT_LT(held(true), 2 * result);
}

TEST(Recompute, TrainsLayersBehindConstants) {
  const F::Linear layer(3, 2);
  const Array x = ones({4, 3}, dtype::float32);
  F::sum(layer(x)).backward();
  const auto expected = layer.W.grad().to_vector<float>();
  layer.W.zero_grad();
  F::sum(F::recompute([&](const Variable& v) { return layer(v); }, x)).backward();
  EXPECT_EQ(layer.W.grad().to_vector<float>(), expected);
}

TEST(Recompute, RecordsNothingWhereNothingIsRecorded) {
  int calls = 0;
  const NoBackprop off;
  const Variable y = F::recompute(
      [&](const Variable& v) {
        ++calls;
        return v * 2;
      },
      Variable(ones({2})));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(y.creator(), nullptr);
}

TEST(Recompute, TakesAndGivesSeveral) {
  const Variable a(array({1.0, 2.0})), b(array({3.0, 4.0})), c(array({5.0, 6.0}));
  const Variables ys = F::recompute(
      [](const Variables& v) {
        return Variables{v[0] * v[1], v[1] + 0.0, Variable::constant(ones({2}))};
      },
      Variables{a, b, c});
  ASSERT_EQ(ys.size(), 3u);
  backward({ys[0], ys[1]}, {ones({2}), ones({2})});
  EXPECT_EQ(a.grad().to_vector<double>(), (std::vector<double>{3, 4}));
  EXPECT_EQ(b.grad().to_vector<double>(), (std::vector<double>{2, 3}));
  EXPECT_FALSE(c.grad().defined());
}

TEST(Recompute, KeepsTheAutocastScope) {
  const F::Linear layer(3, 3);
  const Array x = random::normal({4, 3}, 0, 1, dtype::float32);
  const auto gradients = [&](bool again) {
    layer.W.zero_grad();
    Variable y;
    {
      const AutocastScope scope(dtype::bfloat16);
      const auto f = [&](const Variable& v) { return layer(v); };
      y = again ? F::recompute(f, x) : f(x);
    }
    EXPECT_EQ(y.dtype(), dtype::bfloat16);
    F::sum(F::square(y)).backward();
    return layer.W.grad().to_vector<float>();
  };
  EXPECT_EQ(gradients(true), gradients(false));
}

TEST(Recompute, InPartsIsTheSame) {
  const F::Linear layer(3, 3);
  const Variable x(random::normal({4, 3}, 0, 1, dtype::float32));
  const auto run = [&](bool in_parts) {
    layer.W.zero_grad();
    const Variable y =
        F::sum(F::square(F::recompute([&](const Variable& v) { return layer(v); }, x)));
    DeferredWeights later;
    y.backward({.weights_later = in_parts ? &later : nullptr});
    EXPECT_EQ(layer.W.state()->has_gradient(), !in_parts);
    backward_weights(later);
    return std::pair(x.grad().to_vector<float>(), layer.W.grad().to_vector<float>());
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Recompute, SaysWhatItCannotDo) {
  const Variable x(ones({2})), outside = x * 2;
  try {
    F::recompute([&](const Variable& v) { return v * outside; }, x);
    FAIL();
  } catch (const GradientError& e) {
    expect_contains(e.what(), {"give it to recompute as an input"});
  }
  int calls = 0;
  const auto more = [&](const Variable& v) { return ++calls > 1 ? F::dropout(v) : v * 1; };
  EXPECT_THROW(F::sum(F::recompute(more, x)).backward(), ValueError);
  EXPECT_THROW(F::sum(F::recompute([](const Variable& v) { return v * v; }, x))
                   .backward({.create_graph = true}),
               GradientError);
  EXPECT_THROW(F::recompute(std::function<Variables(const Variables&)>(), Variables{x}),
               ValueError);
}

}  // namespace
}  // namespace catena
