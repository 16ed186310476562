// Undefined handles: whatever is called on one is an error that names the call, never a crash.
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/function.h"
#include "catena/autograd/function_set.h"
#include "catena/autograd/gradient_check.h"
#include "error_text.h"

namespace catena {
namespace {

// 3 x with the gradient of 2 x.
struct WrongGradient : Function {
  Arrays forward(const Arrays& xs) override { return {xs[0] * 3}; }
  Arrays backward(const Arrays&, const Arrays& gys) override { return {gys[0] * 2}; }
};

// A call, and what its message must begin with.
using Calls = std::vector<std::pair<const char*, std::function<void()>>>;

void expect_refused(const Calls& calls) {
  for (const auto& [name, call] : calls) {
    const std::string text = error_of<ValueError>(call);
    EXPECT_TRUE(text.starts_with(std::string(name) + ": this ")) << name << " says: " << text;
    EXPECT_NE(text.find("undefined"), std::string::npos) << text;
  }
}

TEST(Undefined, EveryMethodOfAVariable) {
  const Variable v;
  const Array x = ones({2});
  EXPECT_FALSE(v.defined());
  EXPECT_EQ(v.body(), nullptr);
  EXPECT_TRUE(same_variable(v, Variable()));
  EXPECT_FALSE(same_variable(v, Variable(x)));
  std::ostringstream shown;
  shown << v;
  EXPECT_EQ(shown.str(), "Variable()");
  expect_refused({
      {"Variable::data", [&] { v.data(); }},
      {"Variable::set_data", [&] { v.set_data(x); }},
      {"Variable::grad", [&] { v.grad(); }},
      {"Variable::set_grad", [&] { v.set_grad(x); }},
      {"Variable::grad_variable", [&] { v.grad_variable(); }},
      {"Variable::creator", [&] { v.creator(); }},
      {"Variable::is_volatile", [&] { v.is_volatile(); }},
      {"Variable::set_volatile", [&] { v.set_volatile(Volatile::on); }},
      {"Variable::requires_grad", [&] { v.requires_grad(); }},
      {"Variable::dtype", [&] { v.dtype(); }},
      {"Variable::shape", [&] { v.shape(); }},
      {"Variable::shape", [&] { v.shape(0); }},
      {"Variable::ndim", [&] { v.ndim(); }},
      {"Variable::size", [&] { v.size(); }},
      {"Variable::device", [&] { v.device(); }},
      {"Variable::item", [&] { v.item(); }},
      {"Variable::item", [&] { v.item<double>(); }},
      {"Variable::label", [&] { v.label(); }},
      {"Variable::name", [&] { v.name(); }},
      {"Variable::set_name", [&] { v.set_name("x"); }},
      {"Variable::backward", [&] { v.backward(); }},
      {"Variable::unchain_backward", [&] { v.unchain_backward(); }},
      {"Variable::node", [&] { v.node(); }},
  });
}

TEST(Undefined, EveryMethodOfAParameter) {
  const Parameter p;
  const Array x = ones({2});
  EXPECT_FALSE(p.defined());
  EXPECT_EQ(p.state(), nullptr);
  EXPECT_TRUE(p == Parameter());
  expect_refused({
      {"Parameter::data", [&] { p.data(); }},
      {"Parameter::variable", [&] { p.variable(); }},
      {"Parameter::variable", [&] { static_cast<const Variable&>(p).data(); }},
      {"Parameter::name", [&] { p.name(); }},
      {"Parameter::dtype", [&] { p.dtype(); }},
      {"Parameter::shape", [&] { p.shape(); }},
      {"Parameter::size", [&] { p.size(); }},
      {"Parameter::device", [&] { p.device(); }},
      {"Parameter::grad", [&] { p.grad(); }},
      {"Parameter::set_grad", [&] { p.set_grad(x); }},
      {"Parameter::accumulate_grad", [&] { p.accumulate_grad(x); }},
      {"Parameter::zero_grad", [&] { p.zero_grad(); }},
      {"Parameter::copy_from", [&] { p.copy_from(x); }},
      {"Parameter::to", [&] { p.to("cpu:1"); }},
      {"Parameter::clone", [&] { p.clone(); }},
      {"Parameter::rebind", [&] { p.rebind(x, x); }},
  });
  const OwnedParameter layer_member;
  const OwnedParameter copied(layer_member);  // an absent bias stays absent
  EXPECT_FALSE(copied.defined());
}

// Undefined arrays and variables as arguments.
TEST(Undefined, Arguments) {
  const Parameter p(ones({2}));
  const Variable x(ones({2}));
  const std::vector<std::function<void()>> calls = {
      [&] { Variable{Array()}; },
      [&] { Variable::constant(Array()); },
      [&] { x.set_data(Array()); },
      [&] { Parameter{Array()}; },
      [&] { p.set_grad(Array()); },
      [&] { p.accumulate_grad(Array()); },
      [&] { p.copy_from(Array()); },
      [&] { numerical_grad([] { return Arrays{}; }, {Array()}, {}); },
      [&] { assert_allclose(Array(), x.data()); },
  };
  EXPECT_THROW(Parameter(arange(2)), DtypeError);  // its state goes without a variable
  for (size_t i = 0; i < calls.size(); ++i)
    EXPECT_NE(error_of<ValueError>(calls[i]).find("undefined"), std::string::npos) << i;
  struct Same : Function {
    Arrays forward(const Arrays& inputs) override { return inputs; }
  };
  expect_contains(error_of<ValueError>([&] { call(Same{}, Variable()); }), {"Same", "undefined"});
  struct Layer : Parameterized {
    OwnedParameter W{ones({2})};
    CATENA_PARAMETERS(W)
  } layer;
  expect_contains(error_of<ValueError>([&] { layer.copy_parameters_from(Parameters(1)); }),
                  {"copy_parameters_from", "parameter 0", "undefined"});
}

TEST(Undefined, MovedFrom) {
  Variable a(ones({2}));
  const Variable b = std::move(a);
  expect_contains(error_of<ValueError>([&] { a.shape(); }), {"Variable::shape", "moved from"});
  EXPECT_EQ(b.shape(), Shape{2});
}

// A gradient as a variable is there after create_graph alone.
TEST(Undefined, GradVariableSaysWhatIsMissing) {
  struct Twice : Function {
    Arrays forward(const Arrays& x) override { return {x[0] * 2}; }
    Arrays backward(const Arrays&, const Arrays& gy) override { return {gy[0] * 2}; }
  };
  const Variable x(ones({1}));
  call(Twice{}, x).backward();
  expect_contains(error_of<ValueError>([&] { x.grad_variable().data(); }),
                  {"Variable::data", "undefined", "create_graph"});
}

// Helpers below these calls do not know the name; a scope in the call gives it.
TEST(Misuse, ErrorsBeginWithTheNameOfTheCall) {
  const Parameter p(zeros({2}), "w");
  const Variable v(zeros({2}));
  const auto wrong = [](const Variables& xs) { return Variables{call(WrongGradient{}, xs[0])}; };
  const Calls calls = {
      {"set_grad: parameter 'w' has shape", [&] { p.set_grad(ones({3})); }},
      {"accumulate_grad: parameter 'w' has shape", [&] { p.accumulate_grad(ones({3})); }},
      {"copy_from: parameter 'w' has shape", [&] { p.copy_from(ones({3})); }},
      {"set_grad: the gradient has shape", [&] { v.set_grad(ones({3})); }},
  };
  for (const auto& [text, use] : calls) EXPECT_EQ(error_of<ShapeError>(use).find(text), 0u) << text;
  EXPECT_EQ(error_of<ValueError>([&] { check_backward(wrong, {ones({2})}); })
                .find("check_backward: the gradient of input 0 and the numerical one differ.\n"
                      "assert_allclose: "),
            0u);
}

}  // namespace
}  // namespace catena
