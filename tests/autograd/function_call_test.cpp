// What stands at the top of each function: hooks, autocast, watchers, profiles.
#include "catena/autograd/function_call.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

#include "autograd/product.h"
#include "catena/array/manipulation.h"
#include "catena/autograd/linear_map.h"
#include "catena/autograd/parameter.h"

namespace catena {
namespace {

using testing::mul;
using testing::number;
using testing::value;

// Writes what it hears: "Product( Product) b:Product( b:Product) ".
struct Writer : FunctionHook {
  std::string name, *heard;
  Writer(std::string n, std::string* h) : name(std::move(n)), heard(h) {}
  void forward_begins(const FunctionCall& c) override { *heard += name + c.name() + "( "; }
  void forward_ends(const FunctionCall& c) override {
    *heard += name + c.name() + ":" + std::to_string(c.outputs().size()) + ") ";
  }
  void backward_begins(const FunctionNode& n) override { *heard += name + "b:" + n.label() + "( "; }
  void backward_ends(const FunctionNode& n) override { *heard += name + "b:" + n.label() + ") "; }
};

TEST(FunctionHooks, HearForwardAndBackward) {
  std::string heard;
  Writer writer("", &heard);
  const Variable x(number(3)), y(number(2));
  Variable z;
  {
    const FunctionHookScope scope(writer);
    z = mul(x, y);
    EXPECT_EQ(heard, "Product( Product:1) ");
    heard.clear();
    z.backward();
    EXPECT_EQ(heard, "b:Product( Product( Product:1) Product( Product:1) b:Product) ");
  }
  heard.clear();
  mul(x, y).backward();
  EXPECT_EQ(heard, "");
}

TEST(FunctionHooks, NestOutermostFirst) {
  std::string heard;
  Writer a("a", &heard), b("b", &heard);
  const FunctionHookScope outer(a), inner(b);
  mul(Variable(number(3)), Variable(number(2)));
  EXPECT_EQ(heard, "aProduct( bProduct( bProduct:1) aProduct:1) ");
}

TEST(FunctionHooks, HearTheEndOfCallsThatFail) {
  std::string heard;
  Writer writer("", &heard);
  const FunctionHookScope scope(writer);
  EXPECT_THROW(mul(Variable(ones({2})), Variable(ones({3}))), ShapeError);
  EXPECT_EQ(heard, "Product( Product:0) ");
}

// A hook that times each function, as a user writes it.
struct Timer : FunctionHook {
  using Clock = std::chrono::steady_clock;
  std::map<std::string, double> seconds;
  std::map<std::string, int> calls;
  void forward_begins(const FunctionCall&) override { started.push_back(Clock::now()); }
  void forward_ends(const FunctionCall& c) override { stop(c.name()); }
  void backward_begins(const FunctionNode&) override { started.push_back(Clock::now()); }
  void backward_ends(const FunctionNode& n) override { stop("backward of " + n.label()); }

 private:
  void stop(const std::string& name) {
    ++calls[name];
    seconds[name] += std::chrono::duration<double>(Clock::now() - started.back()).count();
    started.pop_back();
  }
  std::vector<Clock::time_point> started;
};

TEST(FunctionHooks, TimeFunctions) {
  Timer timer;
  const FunctionHookScope scope(timer);
  const Variable x(ones({300, 300})), y(ones({300, 300}));
  const Variable z = mul(mul(x, y), y);
  z.set_grad(ones({300, 300}));
  z.backward();
  EXPECT_EQ(timer.calls["Product"], 6);
  EXPECT_EQ(timer.calls["backward of Product"], 2);
  EXPECT_GT(timer.seconds["Product"], 0);
  EXPECT_GT(timer.seconds["backward of Product"], 0);
}

TEST(NanFinder, NamesTheFunction) {
  NanFinder finder;
  const FunctionHookScope scope(finder);
  const Variable x(full({2}, 1e300)), one(ones({2}));
  EXPECT_NO_THROW(mul(x, one));
  try {
    mul(x, x);
    FAIL();
  } catch (const ValueError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("Product: output 0, (2,) float64, has NaN or infinite"), std::string::npos)
        << text;
    EXPECT_NE(text.find("all its operands are finite"), std::string::npos) << text;
  }
  // x^2 is finite, its gradient is not.
  const Variable y = mul(x, full({2}, 1e-300));
  y.set_grad(full({2}, 1e300));
  const Variable big(full({2}, 1e10)), z = mul(big, full({2}, 1e200));
  z.set_grad(full({2}, 1e200));
  try {
    z.backward();
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("Product"), std::string::npos) << e.what();
  }
}

TEST(NanFinder, NamesTheParameter) {
  NanFinder finder;
  const FunctionHookScope scope(finder);
  const Parameter w(full({2}, INFINITY), "l1/W");
  try {
    mul(w, Variable(ones({2})));
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("operand 0, parameter 'l1/W', (2,) float64, is not"),
              std::string::npos)
        << e.what();
  }
}

TEST(Autocast, CastsByTheRow) {
  const Variable x(ones({2}, dtype::float32)), d(ones({2}, dtype::float64)),
      h(ones({2}, dtype::bfloat16));
  const auto dtypes = [&](Autocast row) {
    FunctionCall call("f", row, x, h, d);
    return message(call[0].dtype(), " ", call[1].dtype(), " ", call[2].dtype());
  };
  EXPECT_EQ(dtypes(Autocast::kLow), "float32 bfloat16 float64");  // without a scope
  const AutocastScope scope(dtype::bfloat16);
  EXPECT_EQ(AutocastScope::low(), dtype::bfloat16);
  EXPECT_EQ(dtypes(Autocast::kNone), "float32 bfloat16 float64");
  EXPECT_EQ(dtypes(Autocast::kLow), "bfloat16 bfloat16 float64");
  EXPECT_EQ(dtypes(Autocast::kFloat32), "float32 float32 float64");
  EXPECT_EQ(dtypes(Autocast::kWidest), "float64 float64 float64");
  {
    const AutocastScope off(dtype::float32);
    EXPECT_EQ(dtypes(Autocast::kLow), "float32 bfloat16 float64");
  }
  EXPECT_THROW(AutocastScope(dtype::float64), DtypeError);
  EXPECT_THROW(AutocastScope(dtype::int32), DtypeError);
}

TEST(Autocast, GradientsArriveInTheDtypeOfTheOperand) {
  const Parameter w(ones({2}, dtype::float32));
  {
    const AutocastScope scope(dtype::bfloat16);
    FunctionCall call("f", Autocast::kLow, w.variable());
    EXPECT_EQ(call[0].dtype(), dtype::bfloat16);
    const Variable y = mul(call[0], call[0]);
    y.set_grad(ones({2}, dtype::bfloat16));
    y.backward();
  }
  EXPECT_EQ(w.grad().dtype(), dtype::float32);
  EXPECT_EQ(w.grad()(0).item<float>(), 2);
}

struct Gatherer : BackwardObserver {
  int uses = 0;
  explicit Gatherer(const Parameter& p) { observe(p); }
  void watch(bool on) { watch_uses(on); }
  void gradient_is_final(ParameterState&) override {}
  void before_use(ParameterState& state) override {
    ++uses;
    state.variable.data().fill(5);  // the values come now
  }
};

TEST(WatchedParameters, AreThereWhenAFunctionUsesThem) {
  const Parameter w(number(0));
  Gatherer gatherer(w);
  EXPECT_EQ(value(mul(w, number(2)).data()), 0);
  gatherer.watch(true);
  const Variable y = mul(w, number(2));
  EXPECT_EQ(value(y.data()), 10);
  y.backward();  // was not written to since
  EXPECT_EQ(gatherer.uses, 1);
  gatherer.watch(false);
  mul(w, number(2));
  EXPECT_EQ(gatherer.uses, 1);
  EXPECT_EQ(detail::call_watchers.load(), 0);
}

TEST(FunctionCalls, NameThemselvesWithThePlaceOfTheirParameters) {
  const Parameter w(number(1));
  note_path(*w.state(), "block/l1/W");
  EXPECT_EQ(FunctionCall("Linear", Autocast::kNone, w.variable()).label(), "Linear 'block/l1'");
  EXPECT_EQ(FunctionCall("Linear", Autocast::kNone, Variable(number(1))).label(), "Linear");
}

TEST(FunctionCalls, TakeOperands) {
  const Variable x(number(1)), y(number(2));
  const Variable* none = nullptr;
  FunctionCall call("f", Autocast::kNone, x, none, &y);
  EXPECT_EQ(call.size(), 2u);
  EXPECT_TRUE(same_variable(call[1], y));
  EXPECT_EQ(call.optional(2), nullptr);
  EXPECT_THROW(FunctionCall("f", Autocast::kNone, Variable()), ValueError);
  const Variable far(ones({1}, cpu(1)));
  FunctionCall apart("f", Autocast::kNone, x, far);
  EXPECT_THROW(apart.require_one_device(), DeviceError);
}

// Linear maps -------------------------------------------------------------------------------------

// y = 3 x, into memory alone.
struct Triple {
  static constexpr const char* kName = "Triple";
  Array empty(const Array& x) const {
    return Array::uninitialized(x.shape(), x.dtype(), x.device());
  }
  void forward(const Array& x, const Array& y, bool accumulate) const {
    detail::assign_or_add(y, x * 3, accumulate);
  }
  void adjoint(const Array& gy, const Array& gx, bool accumulate) const {
    forward(gy, gx, accumulate);
  }
};

// The reverse, as views.
struct Reverse {
  static constexpr const char* kName = "Reverse";
  Array forward(const Array& x) const { return flip(x, 0); }
  Array adjoint(const Array& gy) const { return flip(gy, 0); }
};

template <class Map>
Variable apply(const Variable& x) {
  FunctionCall call(Map::kName, Autocast::kNone, x);
  return linear_map(call, Map());
}

TEST(LinearMaps, HaveGradientsOfAnyOrder) {
  const Variable x(array({1.0, 2.0, 4.0}));
  const Variable y = apply<Triple>(apply<Reverse>(x));
  EXPECT_EQ(y.data().to_vector<double>(), (std::vector<double>{12, 6, 3}));
  const Variable z = mul(y, y);
  z.set_grad(array({1.0, 10.0, 100.0}));
  z.backward({.create_graph = true});
  const Variable g = x.grad_variable();  // 18 x times the reverse of the weights
  EXPECT_EQ(g.data().to_vector<double>(), (std::vector<double>{1800, 360, 72}));
  g.set_grad(ones({3}));
  g.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{1800, 180, 18}));
}

TEST(LinearMaps, WriteIntoParametersAndAdd) {
  const Parameter w(array({1.0, 2.0}));
  for (double expected : {3.0, 6.0}) {
    const Variable y = apply<Triple>(w);
    y.set_grad(ones({2}));
    y.backward();
    EXPECT_EQ(w.grad().to_vector<double>(), (std::vector<double>{expected, expected}));
  }
  const Variable y = apply<Reverse>(w);
  y.set_grad(array({10.0, 20.0}));
  y.backward();
  EXPECT_EQ(w.grad().to_vector<double>(), (std::vector<double>{26, 16}));
}

}  // namespace
}  // namespace catena
