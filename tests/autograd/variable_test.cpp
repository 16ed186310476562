// From arrays to variables: Variable(x) wants a gradient, an array in a variable's place does not.
#include "catena/autograd/variable.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/function.h"
#include "catena/autograd/function_set.h"
#include "error_text.h"

namespace catena {
namespace {

bool wants_gradient(const Variable& v) { return v.requires_grad(); }
bool wants_gradient_by_value(Variable v) { return v.requires_grad(); }
bool first_wants_gradient(const Variables& vs) { return vs[0].requires_grad(); }
Variable returned(const Array& x) { return x; }

struct Cube : Function {
  Arrays forward(const Arrays& x) override { return {x[0] * x[0] * x[0]}; }
  Arrays backward(const Arrays& x, const Arrays& gy) override { return {3 * x[0] * x[0] * gy[0]}; }
};

TEST(ArrayToVariable, SayingVariableMakesARoot) {
  const Array x = ones({2});
  const Variable parentheses(x), braces{x};
  EXPECT_TRUE(parentheses.requires_grad());
  EXPECT_TRUE(braces.requires_grad());
  EXPECT_TRUE(wants_gradient(Variable(x)));
  EXPECT_TRUE(wants_gradient(Variable{x}));
  EXPECT_TRUE(wants_gradient(Variable(x + 1)));
  EXPECT_TRUE(wants_gradient(static_cast<Variable>(x)));
  EXPECT_TRUE(Variable(x, Volatile::on).is_volatile());
  // Selected elements are an array too.
  const Array rows = array({0, 1});
  EXPECT_TRUE(Variable(x(rows)).requires_grad());
  EXPECT_TRUE(Variable{x(rows)}.requires_grad());
  EXPECT_FALSE(Variable(arange(2)).requires_grad());  // no gradient flows to integers
}

TEST(VariableData, CountsItsElements) {
  EXPECT_EQ(Variable(zeros({2, 3, 4})).size(), 24);
  EXPECT_EQ(Variable(zeros({5, 0})).size(), 0);
  EXPECT_EQ(Variable(zeros(Shape{})).size(), 1);
  EXPECT_EQ(Parameter(zeros({7, 2})).variable().size(), 14);
}

TEST(VariableData, IsReplaced) {
  const Variable x(ones({2, 3}));
  const Array other = full({4}, 2.0, {Dtype::kFloat32, cpu(1)});
  x.set_data(other);
  EXPECT_TRUE(x.data().same_body(other));
  EXPECT_EQ(x.size(), 4);
  EXPECT_EQ(x.shape(), Shape{4});
  EXPECT_EQ(x.dtype(), Dtype::kFloat32);
  EXPECT_EQ(x.device(), cpu(1));
  EXPECT_TRUE(x.requires_grad());
  EXPECT_THROW(x.set_grad(ones({2, 3}, {Dtype::kFloat32, cpu(1)})), ShapeError);
  const Variable y = call(Cube{}, x);
  y.set_grad(ones_like(other));
  y.backward();
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(4, 12));
}

// The graph does not notice: what was computed is differentiated where it was computed.
TEST(VariableData, IsReplacedBehindTheGraph) {
  const Variable x(full({1}, 2.0));
  const Variable y = call(Cube{}, x);
  x.set_data(full({1}, 5.0));
  EXPECT_EQ(y.item<int>(), 8);
  y.backward();
  EXPECT_EQ(x.grad().item<int>(), 12);
}

// Graphs look parameters up when they go back, since arenas move them: there it is a write.
TEST(VariableData, OfAParameterIsTheParametersValue) {
  const Parameter p(full({1}, 2.0));
  const Variable before = call(Cube{}, p);
  p.variable().set_data(full({1}, 3.0));
  EXPECT_EQ(p.data().item<int>(), 3);
  EXPECT_THROW(before.backward(), GradientError);
  call(Cube{}, p).backward();
  EXPECT_EQ(p.grad().item<int>(), 27);
}

TEST(ArrayToVariable, AnArrayInAVariablesPlaceIsAConstant) {
  const Array x = ones({2}), rows = array({0, 1});
  const Variable initialised = x;
  EXPECT_FALSE(initialised.requires_grad());
  EXPECT_TRUE(initialised.data().same_body(x));
  Variable assigned;
  assigned = x;
  EXPECT_FALSE(assigned.requires_grad());
  EXPECT_FALSE(wants_gradient(x));
  EXPECT_FALSE(wants_gradient(x + 1));
  EXPECT_FALSE(wants_gradient(x(rows)));
  EXPECT_FALSE(wants_gradient_by_value(x));
  EXPECT_FALSE(returned(x).requires_grad());
  const auto lambda = [](const Array& a) -> Variable { return a; };
  EXPECT_FALSE(lambda(x).requires_grad());
  const std::function<bool(const Variable&)> function = wants_gradient;
  EXPECT_FALSE(function(x));
  static_assert(!std::is_convertible_v<double, Variable>);
  static_assert(!std::is_convertible_v<Variable, Array>);
}

TEST(ArrayToVariable, Lists) {
  const Array x = ones({2}), y = zeros({2});
  const Variables both{x, y};
  EXPECT_FALSE(both[0].requires_grad() || both[1].requires_grad());
  EXPECT_FALSE(first_wants_gradient({x, y}));
  const Variables mixed{x, Variable(y)};
  EXPECT_FALSE(mixed[0].requires_grad());
  EXPECT_TRUE(mixed[1].requires_grad());
  Variables grown;
  grown.push_back(x);
  grown.emplace_back(x);  // Variable(x)
  EXPECT_FALSE(grown[0].requires_grad());
  EXPECT_TRUE(grown[1].requires_grad());
  const Arrays arrays{x, y};
  EXPECT_TRUE(first_wants_gradient(Variables(arrays.begin(), arrays.end())));
  EXPECT_TRUE(std::optional<Variable>(x)->requires_grad());
}

TEST(ArrayToVariable, ChoicesBetweenArraysAndVariables) {
  const Array x = ones({2});
  const Variable root(zeros({2}));
  for (bool choose_array : {false, true}) {
    const Variable first = choose_array ? x : root, second = choose_array ? root : x;
    EXPECT_EQ(first.requires_grad(), !choose_array);
    EXPECT_EQ(second.requires_grad(), choose_array);
  }
}

// A model whose call takes a variable takes an array.
TEST(ArrayToVariable, ModelsTakeArrays) {
  struct Model : FunctionSet {
    OwnedParameter W{ones({3})};
    CATENA_PARAMETERS(W)
    Variable operator()(const Variable& x) const { return call(Cube{}, x); }
  };
  const Model model;
  const Variable y = model(full({1}, 2.0));
  EXPECT_EQ(y.item<int>(), 8);
  EXPECT_EQ(y.creator(), nullptr);
  const Variable x(full({1}, 2.0));
  model(x).backward();
  EXPECT_EQ(x.grad().item<int>(), 12);
}

TEST(ArrayToVariable, FunctionsOfUsersTakeArrays) {
  EXPECT_EQ(call(Cube{}, full({1}, 3.0)).creator(), nullptr);
  EXPECT_EQ(call_multi(Cube{}, {full({1}, 3.0)})[0].item<int>(), 27);
}

TEST(ArrayToVariable, AnUndefinedArrayIsAnUndefinedVariable) {
  const Variable nothing = Array();
  EXPECT_FALSE(nothing.defined());
  expect_contains(error_of<ValueError>([] { wants_gradient(Array()); }),
                  {"Variable::requires_grad", "undefined"});
  expect_contains(error_of<ValueError>([] { Variable{Array()}; }), {"Variable", "undefined"});
}

// Arithmetic of arrays stays arithmetic of arrays.
TEST(ArrayToVariable, OperatorsOfArraysGiveArrays) {
  const Array x = ones({2});
  const auto is_array = [](const auto& value) {
    return std::is_same_v<std::decay_t<decltype(value)>, Array>;
  };
  EXPECT_TRUE(is_array(x + x));
  EXPECT_TRUE(is_array(x * 2));
  EXPECT_TRUE(is_array(2 - x));
  EXPECT_TRUE(is_array(-x));
  EXPECT_TRUE(is_array(x / Scalar(2)));
  EXPECT_TRUE(is_array(abs(x)));
}

TEST(ArrayToVariable, ErrorsOfConstantsSayWhatToWrite) {
  const Variable x = full({1}, 2.0);
  expect_contains(error_of<GradientError>([&] { call(Cube{}, x).backward(); }),
                  {"nothing was recorded", "Variable(array)"});
}

}  // namespace
}  // namespace catena
