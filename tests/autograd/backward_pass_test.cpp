// Passes within passes, and passes in parts.
#include "autograd/backward_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "autograd/product.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/function.h"
#include "catena/autograd/parameter.h"

namespace catena {
namespace {

using testing::mul;
using testing::number;
using testing::value;

// y = x * f(), whose backward runs `inner` and gives gy back.
struct Calls : Function {
  std::function<void()> inner;
  std::vector<Parameter> behind;
  explicit Calls(std::function<void()> f, std::vector<Parameter> p = {})
      : inner(std::move(f)), behind(std::move(p)) {}
  std::vector<Parameter> uses() const override { return behind; }
  Arrays forward(const Arrays& x) override { return {x[0].copy()}; }
  Arrays backward(const Arrays&, const Arrays& gy) override {
    const ForceBackprop on;
    inner();
    return {gy[0]};
  }
};

struct Listener : BackwardObserver {
  std::string heard;
  void backward_begins() override { heard += "( "; }
  void gradient_is_final(ParameterState& p) override {
    heard += p.name + "=" + to_string(p.settle().item()) + " ";
  }
  void backward_ends() override { heard += ")"; }
};

struct NestedPasses : ::testing::Test {
  const Parameter a{number(2), "a"}, b{number(3), "b"};
  Listener listener;
};

TEST_F(NestedPasses, ObserversHearTheOutermostAlone) {
  listener.observe(a);
  listener.observe(b);
  const Variable h = mul(a, a);
  call(Calls([&] { mul(b, number(5)).backward(); }, {b}), h).backward();
  EXPECT_EQ(listener.heard, "( b=5 a=4 )");
}

TEST_F(NestedPasses, DeclaredParametersAreFinalAfterTheirLastUse) {
  listener.observe(b);
  // b is used before the function, that is after it in the pass, and within.
  const Variable h = mul(b, number(7));
  call(Calls([&] { mul(b, number(5)).backward(); }, {b}), h).backward();
  EXPECT_EQ(listener.heard, "( b=12 )");
}

TEST_F(NestedPasses, UndeclaredParametersAreFinalAtTheEnd) {
  listener.observe(a);
  listener.observe(b);
  const Variable h = mul(a, number(7));
  const auto inner = [&] { mul(b, number(5)).backward(); };
  call(Calls(inner), call(Calls(inner), h)).backward();
  EXPECT_EQ(listener.heard, "( a=7 b=10 )");
}

TEST_F(NestedPasses, ObserversOfInnerParametersAloneHearOfTheBeginning) {
  listener.observe(b);
  const Variable x(number(1));
  call(Calls([&] { mul(b, number(5)).backward(); }), x).backward();
  EXPECT_EQ(listener.heard, "( b=5 )");
}

TEST_F(NestedPasses, LateContributionsToAFinalGradientAreRefused) {
  listener.observe(b);
  const Variable x(number(1));
  // In the pass b comes before the function.
  const Variable y = mul(call(Calls([&] { mul(b, number(5)).backward(); }), x), b);
  try {
    y.backward();
    FAIL() << "not refused";
  } catch (const GradientError& e) {
    EXPECT_NE(std::string(e.what()).find("parameter 'b'"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("uses()"), std::string::npos) << e.what();
  }
  // Declared it is right.
  b.zero_grad();
  listener.heard.clear();
  mul(call(Calls([&] { mul(b, number(5)).backward(); }, {b}), x), b).backward();
  EXPECT_EQ(listener.heard, "( b=6 )");
}

TEST_F(NestedPasses, GradientsInFlightOfSharedVerticesSurvive) {
  const Variable x(number(3));
  const Variable h = mul(x, x), g = mul(h, h);
  Array inner_grad;
  const auto inner = [&] {
    mul(h, number(100)).backward();
    inner_grad = x.grad().copy();
  };
  // In the pass h has got a part of its gradient when the inner pass goes through it.
  mul(call(Calls(inner), mul(h, number(1))), g).backward();
  EXPECT_EQ(value(inner_grad), 600);
  // y = h^3 = x^6
  EXPECT_EQ(value(x.grad()), 6 * 243);
}

TEST_F(NestedPasses, NestToAnyDepth) {
  listener.observe(a);
  listener.observe(b);
  const Variable x(number(3));
  const auto innermost = [&] { mul(mul(b, x), number(2)).backward(); };
  const auto inner = [&] { call(Calls(innermost), mul(mul(a, x), number(3))).backward(); };
  const Variable h = mul(x, x);
  mul(call(Calls(inner), h), h).backward();
  EXPECT_EQ(value(x.grad()), 4 * 27);
  EXPECT_EQ(value(a.grad()), 9);
  EXPECT_EQ(value(b.grad()), 6);
  EXPECT_EQ(listener.heard, "( a=9 b=6 )");
}

TEST_F(NestedPasses, FailedOnesLeaveNothingBehind) {
  listener.observe(b);
  const Variable x(number(3));
  const Variable h = mul(x, x);
  struct Failure {};
  const auto fails = [&] { call(Calls([] { throw Failure(); }), mul(h, b)).backward(); };
  // Caught inside, the outer pass goes on as if nothing had been.
  const auto caught = [&] { EXPECT_THROW(fails(), Failure); };
  mul(call(Calls(caught), h), h).backward();
  EXPECT_EQ(value(x.grad()), 4 * 27);
  EXPECT_EQ(listener.heard, "( b=0 )");
  // Not caught, it ends with it; the next one is an outermost one.
  listener.heard.clear();
  EXPECT_THROW(mul(call(Calls(fails), h), h).backward(), Failure);
  listener.heard.clear();
  b.zero_grad();
  mul(h, b).backward();
  EXPECT_EQ(value(x.grad()), 18);
  EXPECT_EQ(listener.heard, "( b=9 )");
}

// Parts -------------------------------------------------------------------------------------------

struct PassesInParts : NestedPasses {};

TEST_F(PassesInParts, InputsComeFirstWeightsLater) {
  listener.observe(a);
  listener.observe(b);
  const Variable x(number(5));
  const Variable y = mul(mul(x, a), b);
  DeferredWeights later;
  EXPECT_TRUE(later.empty());
  y.backward({.weights_later = &later});
  EXPECT_EQ(value(x.grad()), 6);
  EXPECT_FALSE(a.state()->has_gradient());
  EXPECT_EQ(listener.heard, "");
  EXPECT_FALSE(later.empty());
  backward_weights(later);
  EXPECT_TRUE(later.empty());
  EXPECT_EQ(listener.heard, "( b=10 a=15 )");
  EXPECT_EQ(value(x.grad()), 6);
  backward_weights(later);  // nothing left
  EXPECT_EQ(listener.heard, "( b=10 a=15 )");
}

TEST_F(PassesInParts, CountCallsOfBackward) {
  struct Counted : testing::Product {
    int* calls;
    explicit Counted(int* c) : calls(c) {}
    void backward(BackwardContext& c) override {
      ++*calls;
      Product::backward(c);
    }
  };
  struct Whole : Counted {
    using Counted::Counted;
    bool splits() const override { return false; }
  };
  int split = 0, whole = 0;
  const auto apply = [](auto* node, const Variable& v, const Variable& w) {
    FunctionCall c("Product", Autocast::kNone, v, w);
    return c.record(multiply(v.data(), w.data()), [&] {
      node->save_input(0, v);
      node->save_input(1, w);
      return IntrusivePtr(node);
    });
  };
  const Variable x(number(5));
  const Variable y = apply(new Whole(&whole), apply(new Counted(&split), x, a), b);
  DeferredWeights later;
  y.backward({.weights_later = &later});
  EXPECT_EQ(value(x.grad()), 6);
  EXPECT_FALSE(b.state()->has_gradient());  // made, and kept
  EXPECT_EQ(split, 1);
  EXPECT_EQ(whole, 1);
  backward_weights(later);
  EXPECT_EQ(split, 2);
  EXPECT_EQ(whole, 1);
  EXPECT_EQ(value(a.grad()), 15);
  EXPECT_EQ(value(b.grad()), 10);
}

TEST_F(PassesInParts, FunctionsOfWeightsAloneComeLater) {
  const Variable x(number(5));
  const Variable w = mul(a, a);  // as a cast of a weight
  const Variable y = mul(mul(x, w), w);
  DeferredWeights later;
  y.backward({.weights_later = &later});
  EXPECT_EQ(value(x.grad()), 16);
  EXPECT_FALSE(w.grad().defined());
  backward_weights(later);
  EXPECT_EQ(value(a.grad()), 5 * 4 * 8);
}

TEST_F(PassesInParts, SeveralPassesLeaveTheirRestInOnePlace) {
  DeferredWeights later;
  listener.observe(a);
  for (double n : {1.0, 2.0, 3.0}) {
    const Variable x(number(n));
    mul(x, a).backward({.weights_later = &later});
    EXPECT_EQ(value(x.grad()), 2);
  }
  mul(a, a).backward({.weights_later = &later});  // of weights alone
  backward({a}, {}, {.weights_later = &later});   // a weight itself
  EXPECT_FALSE(a.state()->has_gradient());
  backward_weights(later);
  EXPECT_EQ(listener.heard, "( a=11 )");
}

TEST_F(PassesInParts, InnerPassesLeaveTheirsToo) {
  listener.observe(a);
  listener.observe(b);
  const Variable x(number(5));
  DeferredWeights later;
  const auto inner = [&] { mul(b, number(5)).backward(); };
  call(Calls(inner), mul(x, a)).backward({.weights_later = &later});
  EXPECT_EQ(value(x.grad()), 2);
  EXPECT_FALSE(b.state()->has_gradient());
  EXPECT_EQ(listener.heard, "");
  backward_weights(later);
  EXPECT_EQ(listener.heard, "( b=5 a=5 )");
}

TEST_F(PassesInParts, RefuseWhatChangedInBetween) {
  const Variable x(number(5));
  const Variable y = mul(x, a);
  DeferredWeights later;
  y.backward({.weights_later = &later});
  x.data().fill(1);
  EXPECT_THROW(backward_weights(later), GradientError);
  EXPECT_TRUE(later.empty());
}

TEST_F(PassesInParts, AreNotRecorded) {
  DeferredWeights later;
  EXPECT_THROW(mul(a, a).backward({.create_graph = true, .weights_later = &later}), ValueError);
}

// Whatever flows there, by inner passes too; other variables get theirs, and observers hear of it.
TEST_F(NestedPasses, GradientsOfParametersMayBeDropped) {
  const BackwardOptions drop{.drop_parameter_gradients = true};
  a.set_grad(number(7));
  listener.observe(a);
  listener.observe(b);
  const Variable x(number(NAN));
  const auto inner = [&] { mul(b, number(5)).backward(); };
  call(Calls(inner, {b}), mul(mul(a, a), x)).backward(drop);
  EXPECT_EQ(listener.heard, "( b=0 a=7 )");
  EXPECT_FALSE(b.state()->has_gradient());
  EXPECT_EQ(value(x.grad()), 4);
  backward({a}, {}, drop);  // a parameter itself
  EXPECT_EQ(value(a.grad()), 7);
  mul(a, a).backward();
  EXPECT_EQ(value(a.grad()), 11);
}

TEST_F(NestedPasses, AnInnerPassMayDropThemAlone) {
  const auto inner = [&] { mul(b, number(5)).backward({.drop_parameter_gradients = true}); };
  call(Calls(inner), mul(a, a)).backward();
  EXPECT_EQ(value(a.grad()), 4);
  EXPECT_FALSE(b.state()->has_gradient());
}

TEST_F(NestedPasses, DroppedGradientsAreNotLeftForLater) {
  DeferredWeights later;
  EXPECT_THROW(mul(a, a).backward({.weights_later = &later, .drop_parameter_gradients = true}),
               ValueError);
  const Variable x(number(5));
  mul(x, a).backward({.weights_later = &later});
  const auto inner = [&] { backward_weights(later); };
  backward({a}, {}, {.weights_later = &later});
  call(Calls(inner), mul(b, b)).backward({.drop_parameter_gradients = true});
  EXPECT_FALSE(a.state()->has_gradient());
  EXPECT_TRUE(later.empty());
}

TEST_F(PassesInParts, KeepGradientsThatWereAskedFor) {
  const Variable x(number(5));
  const Variable h = mul(x, a), y = mul(h, b);
  DeferredWeights later;
  y.backward({.retain_grad = true, .weights_later = &later});
  backward_weights(later);
  EXPECT_EQ(value(h.grad()), 3);
}

}  // namespace
}  // namespace catena
