// The methods of Variable: each is the function of the same name, and takes what Array's takes.
#include <functional>
#include <vector>

#include "catena/autograd/function_node.h"
#include "catena/functions/array.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class VariableMethods : public OnDevice {};

using VariableToVariable = std::function<Variable(const Variable&)>;

struct Method {
  const char* name;
  VariableToVariable method, function;
  std::function<Array(const Array&)> array;  // the method of Array written the same way
};

// The same text as a method of a variable and of an array, beside the function.
#define METHOD(text, function_text)                                      \
  {                                                                      \
#text, [](const Variable& x) { return x.text; },                       \
        [](const Variable& x) -> Variable { return F::function_text; },    \
        [](const Array& x) -> Array { return x.text; } \
  }

// Of an array of shape (3, 1, 4).
const std::vector<Method> kMethods = {
    METHOD(reshape({4, -1}), reshape(x, {4, -1})),
    METHOD(reshape(2, 6), reshape(x, {2, 6})),
    METHOD(flatten(), reshape(x, {-1})),
    METHOD(transpose(), transpose(x)),
    METHOD(transpose({1, 0, 2}), transpose(x, {1, 0, 2})),
    METHOD(T(), transpose(x)),
    METHOD(swapaxes(0, -1), swapaxes(x, 0, -1)),
    METHOD(squeeze(), squeeze(x)),
    METHOD(squeeze({1}), squeeze(x, 1)),
    METHOD(expand_dims(1), expand_dims(x, 1)),
    METHOD(broadcast_to({3, 2, 4}), broadcast_to(x, {3, 2, 4})),
    METHOD(astype(dtype::float32), cast(x, dtype::float32)),
    METHOD(to("cpu:1"), copy(x, Device("cpu:1"))),
    METHOD(sum(), sum(x)),
    METHOD(sum(none), sum(x)),
    METHOD(sum(0), sum(x, 0)),
    METHOD(sum({0, 2}), sum(x, {0, 2})),
    METHOD(sum({0, true}), sum(x, 0, true)),
    METHOD(sum(-1, true), sum(x, -1, true)),
    METHOD(sum({{0, 2}, true}), sum(x, {0, 2}, true)),
    METHOD(mean(1), mean(x, 1)),
    METHOD(mean({none, true}), mean(x, none, true)),
    METHOD(max(0), max(x, 0)),
    METHOD(max({0, 2}), max(x, {0, 2})),
    METHOD(min(2, true), min(x, 2, true)),
    METHOD(clip(-0.5, 0.5), clip(x, -0.5, 0.5)),
    METHOD(at({1, Slice(0, none, 2)}), get_item(x, {1, Slice(0, none, 2)})),
};
#undef METHOD

Array gradient_of(const VariableToVariable& f, const Array& x) {
  const Variable root(x);
  const Variable y = f(root);
  y.set_grad(testing::counting_array(y.shape(), y.dtype(), y.device()));
  y.backward();
  return root.grad();
}

TEST_P(VariableMethods, AreTheFunctionsOfTheSameName) {
  const Array x = draw({3, 1, 4});
  for (const Method& m : kMethods) {
    SCOPED_TRACE(m.name);
    const Variable root(x);
    const Variable by_method = m.method(root), by_function = m.function(root);
    EXPECT_EQ(testing::difference(by_method.data(), by_function.data()), "");
    EXPECT_EQ(testing::difference(by_method.data(), m.array(x)), "");
    EXPECT_EQ(by_method.creator()->label(), by_function.creator()->label());
    EXPECT_EQ(testing::difference(gradient_of(m.method, x), gradient_of(m.function, x)), "");
  }
}

TEST_P(VariableMethods, IndexAsArraysDo) {
  const Array x = draw({4, 3, 2});
  const Variable v(x);
  EXPECT_EQ(testing::difference(v(1).data(), x(1)), "");
  EXPECT_EQ(testing::difference(v(Slice(1, 3), 2).data(), x(Slice(1, 3), 2)), "");
  EXPECT_EQ(testing::difference(v(ellipsis, newaxis, 0).data(), x(ellipsis, newaxis, 0)), "");
  EXPECT_EQ(testing::difference(v[-1].data(), x[-1]), "");
  EXPECT_EQ(testing::difference(v[Slice(none, none, 2)].data(), x[Slice(none, none, 2)]), "");
  EXPECT_TRUE(v(1).data().shares_memory_with(x));
  EXPECT_THROW(v(4), IndexError);
  expect_gradients([](const Variable& a) { return a(Slice(none, none, -2), 1) * 2; }, x, "slices");
  expect_gradients([](const Variable& a) { return a[0] * a[1]; }, x, "rows");
}

TEST_P(VariableMethods, KeepdimsMayStandInEitherPlace) {
  const Array x = draw({2, 3});
  EXPECT_EQ(F::sum(x, {0, true}).shape(), (Shape{1, 3}));
  EXPECT_EQ(F::sum(x, 0, true).shape(), (Shape{1, 3}));
  EXPECT_EQ(F::mean(x, {none, true}).shape(), (Shape{1, 1}));
  EXPECT_EQ(F::max(x, {{0, 1}, true}).shape(), (Shape{1, 1}));
  EXPECT_EQ(F::min(x, {0, 1}).shape(), Shape{});
}

TEST_P(VariableMethods, OfUndefinedVariablesNameTheCall) {
  const Variable nothing;
  expect_contains(error_of<ValueError>([&] { nothing.reshape(3); }), {"Reshape"});
  expect_contains(error_of<ValueError>([&] { nothing(0); }), {"GetItem"});
}

CATENA_ON_DEVICES(VariableMethods);

}  // namespace
}  // namespace catena
