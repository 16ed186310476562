// Who is told of final gradients, how often and in which order, and that none outlives its welcome.
#include "catena/autograd/backward_observer.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "autograd/product.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/parameter.h"

namespace catena {
namespace {

using testing::mul;
using testing::number;
using testing::value;

// Writes what it hears into a text: "x( x:a x:b x)".
struct Listener : BackwardObserver {
  Listener(std::string name, std::string& heard) : name(std::move(name)), heard(heard) {}
  std::string name;
  std::string& heard;
  std::function<void(ParameterState&)> then = [](ParameterState&) {};

  void backward_begins() override { heard += name + "( "; }
  void gradient_is_final(ParameterState& p) override {
    heard += name + ":" + p.name + " ";
    then(p);
  }
  void backward_ends() override { heard += name + ") "; }
};

struct Observers : ::testing::Test {
  std::string heard;
  const Parameter a{number(2), "a"}, b{number(3), "b"};

  std::string pass() {
    heard.clear();
    mul(mul(a, b), a).backward();  // a is used first and last
    return heard;
  }
};

TEST_F(Observers, HearEachParameterOnceAfterItsLastUse) {
  Listener x("x", heard);
  x.observe(a);
  x.observe(b);
  x.observe(b);  // twice is once
  const std::string text = pass();
  EXPECT_TRUE(text == "x( x:a x:b x) " || text == "x( x:b x:a x) ") << text;
  EXPECT_EQ(value(a.grad()), 12);
}

TEST_F(Observers, SeveralOfOneParameterHearInTheOrderInWhichTheyCame) {
  Listener x("x", heard), y("y", heard), z("z", heard);
  z.observe(a);
  x.observe(a);
  y.observe(b);
  EXPECT_EQ(pass().find("y:b") != std::string::npos, true);
  EXPECT_NE(heard.find("z:a x:a"), std::string::npos) << heard;
  y.stop_observing();
  EXPECT_EQ(pass(), "z( x( z:a x:a z) x) ");
  z.stop_observing(a);
  EXPECT_EQ(pass(), "x( x:a x) ");
  z.observe(a);  // comes last now
  EXPECT_EQ(pass(), "x( z( x:a z:a x) z) ");
}

TEST_F(Observers, OneThatDiesIsForgotten) {
  Listener x("x", heard);
  {
    Listener gone("gone", heard);
    gone.observe(a);
    x.observe(a);
    EXPECT_EQ(pass(), "gone( x( gone:a x:a gone) x) ");
  }
  EXPECT_EQ(pass(), "x( x:a x) ");
  for (int i = 0; i < 100; ++i) Listener("short", heard).observe(a);
  EXPECT_LE(a.state()->observers().size(), 2u);  // links of the dead do not pile up
}

TEST_F(Observers, MayGoInTheMiddleOfAPass) {
  auto first = std::make_unique<Listener>("first", heard);
  auto second = std::make_unique<Listener>("second", heard);
  first->observe(a);
  second->observe(a);
  first->then = [&](ParameterState&) { second.reset(); };
  EXPECT_EQ(pass(), "first( second( first:a first) ");
  Listener* self = first.release();
  self->then = [&](ParameterState&) { delete self; };
  EXPECT_EQ(pass(), "first( first:a ");
  EXPECT_EQ(pass(), "");
}

TEST_F(Observers, OneThatComesInTheMiddleOfAPassHearsTheNext) {
  Listener x("x", heard), late("late", heard);
  x.observe(a);
  x.then = [&](ParameterState&) { late.observe(a); };
  EXPECT_EQ(pass(), "x( x:a x) ");
  EXPECT_EQ(pass(), "x( late( x:a late:a x) late) ");
}

TEST_F(Observers, OutliveParameters) {
  Listener x("x", heard);
  {
    const Parameter c(number(1), "c");
    x.observe(c);
  }
  x.observe(a);
  EXPECT_EQ(pass(), "x( x:a x) ");
}

TEST_F(Observers, AreToldOncePerParameterByAPassFromSeveralOutputs) {
  Listener x("x", heard), y("y", heard);
  for (Listener* o : {&x, &y}) o->observe(a);
  const Variable h = mul(a, b);
  backward({mul(h, a), mul(h, h), a});
  EXPECT_EQ(heard, "x( y( x:a y:a x) y) ");
}

TEST_F(Observers, HearOfParametersThatNoGradientReached) {
  Listener x("x", heard);
  x.observe(a);
  bool reached = true;
  x.then = [&](ParameterState& p) { reached = p.has_gradient(); };
  struct Cut : FunctionNode {
    std::string label() const override { return "Cut"; }
    void backward(BackwardContext&) override {}
  };
  const Variable* const in[] = {&a.variable()};
  (new Cut)->connect(in, number(1)).backward();
  EXPECT_EQ(heard, "x( x:a x) ");
  EXPECT_FALSE(reached);
}

TEST_F(Observers, RefuseAnUndefinedParameter) {
  Listener x("x", heard);
  EXPECT_THROW(x.observe(Parameter()), ValueError);
  EXPECT_NO_THROW(x.stop_observing(Parameter()));
}

}  // namespace
}  // namespace catena
