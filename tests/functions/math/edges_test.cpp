// Gradients where formulas that are right elsewhere lose their digits, overflow or divide by zero,
// and the conventions for gradients at points that have none.
#include <limits>

#include "functions/functions_test_util.h"

namespace catena {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

class Edges : public OnDevice {
 protected:
  Variable number(double value, Dtype dtype = Dtype::kFloat32) const {
    return Variable(full({1}, value, {dtype, device()}));
  }
  using Binary = Variable (*)(const VariableOperand&, const VariableOperand&);
  void expect_gradients(Binary f, double a, double b, double ga, double gb,
                        Dtype dtype = Dtype::kFloat32) const {
    SCOPED_TRACE(message("of ", a, " and ", b, " in ", dtype));
    const Variable x = number(a, dtype), y = number(b, dtype);
    f(x, y).backward();
    expect_number(x.grad(), ga);
    expect_number(y.grad(), gb);
  }
  using Unary = Variable (*)(const VariableOperand&);
  void expect_gradient(Unary f, double at, double expected) const {
    SCOPED_TRACE(message("at ", at));
    const Variable x = number(at);
    f(x).backward();
    expect_number(x.grad(), expected);
  }
  // The n-th derivative of f at a number.
  double derivative(const std::function<Variable(const Variable&)>& f, double at, int n,
                    Dtype dtype) const {
    const Variable x = number(at, dtype);
    Variable y = f(x);
    for (int order = 1; order <= n; ++order) {
      y.backward({.create_graph = true});
      y = x.grad_variable();
      x.set_grad(Array());
    }
    return y.data().item<double>();
  }
  static void expect_number(const Array& got, double expected) {
    const double value = got.item<double>();
    const double rounding = got.itemsize() == 2 ? 0x1p-8 : 1e-6;
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(value)) << value;
    else if (std::isinf(expected))
      EXPECT_EQ(value, expected);
    else
      EXPECT_NEAR(value, expected, rounding * std::abs(expected));
  }
};

TEST_P(Edges, LogaddexpOfLargeNumbers) {
  for (const auto& [value, dtype] :
       std::initializer_list<std::pair<double, Dtype>>{{1e6, Dtype::kFloat32},
                                                       {1e7, Dtype::kFloat32},
                                                       {1e30, Dtype::kFloat32},
                                                       {1000, Dtype::kFloat16},
                                                       {1e4, Dtype::kFloat16},
                                                       {100, Dtype::kBFloat16},
                                                       {1e4, Dtype::kBFloat16},
                                                       {1e300, Dtype::kFloat64}}) {
    expect_gradients(F::logaddexp, value, value, 0.5, 0.5, dtype);
    expect_gradients(F::logaddexp, -value, -value, 0.5, 0.5, dtype);
  }
  expect_gradients(F::logaddexp, 1e6 + 2, 1e6, 1 / (1 + std::exp(-2)), 1 / (1 + std::exp(2)));
  expect_gradients(F::logaddexp, kInf, 1, 1, 0);
  expect_gradients(F::logaddexp, 1, kInf, 0, 1);
  expect_gradients(F::logaddexp, -kInf, 1, 0, 1);
  expect_gradients(F::logaddexp, 200, -200, 1, 0);
  const auto of_first = [](const Variable& v) { return F::logaddexp(v, 1e6); };
  const double s = 1 / (1 + std::exp(-1.0));
  EXPECT_NEAR(derivative(of_first, 1e6 + 1, 2, Dtype::kFloat32), s * (1 - s), 1e-6);
}

TEST_P(Edges, PowersOfZero) {
  expect_gradients(F::power, 0, 0, 0, 0);
  expect_gradients(F::power, 2, 0, 0, std::log(2));
  const auto to = [](double exponent) {
    return [exponent](const Variable& v) { return F::pow(v, exponent); };
  };
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
    EXPECT_EQ(derivative(to(1), 0, 1, dtype), 1);
    EXPECT_EQ(derivative(to(1), 0, 2, dtype), 0);
    EXPECT_EQ(derivative(to(2), 0, 2, dtype), 2);
    EXPECT_EQ(derivative(to(2), 0, 3, dtype), 0);
    EXPECT_EQ(derivative(to(3), -2, 3, dtype), 6);
  }
}

TEST_P(Edges, AnglesOfZeroAndInfinity) {
  expect_gradients(F::arctan2, 0, 0, 0, 0);
  expect_gradients(F::arctan2, 1, kInf, 0, 0);
  expect_gradients(F::arctan2, -kInf, 1, 0, 0);
  expect_gradients(F::arctan2, kInf, kInf, 0, 0);
  expect_gradients(F::arctan2, kNan, kInf, kNan, kNan);
  expect_gradients(F::arctan2, 3, 4, 4.0 / 25, -3.0 / 25);
}

TEST_P(Edges, QuotientsAndLengths) {
  expect_gradients(F::divide, 0, 0x1p-140, kInf, 0);  // 1 over the divisor overflows
  expect_gradients(F::divide, 6, 2, 0.5, -1.5);
  expect_gradients(F::hypot, 0, 0, 0, 0);
  expect_gradients(F::hypot, kInf, 1, 1, 0);
  expect_gradients(F::hypot, 1, -kInf, 0, -1);
  expect_gradients(F::hypot, -3, 4, -0.6, 0.8);
}

// Without a value there is no gradient.
TEST_P(Edges, ArccoshOutsideItsDomain) {
  for (const double x : {-1e20, -2.0, -1.0, 0.0, 0.5}) expect_gradient(F::arccosh, x, kNan);
  expect_gradient(F::arccosh, 1, kInf);
  expect_gradient(F::arccosh, 2, 1 / std::sqrt(3));
  expect_gradient(F::arccosh, 1 + 0x1p-20, 1 / std::sqrt(0x1p-20 * (2 + 0x1p-20)));
  expect_gradient(F::arccosh, 1e20, 1e-20);
}

// docs/decisions.md, "Gradients at edges": NaN passes no gradient of relu and clip, and makes the
// second operand of maximum and minimum the chosen one.
TEST_P(Edges, SelectionsOfNaN) {
  expect_gradient(F::relu, kNan, 0);
  const Variable x = number(kNan);
  F::clip(x, -1, 1).backward();
  EXPECT_EQ(x.grad().item<double>(), 0);
  for (const Binary f : {Binary(F::maximum), Binary(F::minimum)}) {
    expect_gradients(f, kNan, 1, 0, 1);
    expect_gradients(f, 1, kNan, 0, 1);
  }
}

// Squares of the numbers would be infinite in float16.
TEST_P(Edges, SecondOrderOfLogarithmsIn16Bits) {
  for (const double x : {500.0, 2000.0}) {
    const auto near = [&](double got, double expected) {
      EXPECT_NEAR(got, expected, 0x1p-24 + 0x1p-8 * std::abs(expected)) << x;
    };
    const auto second = [&](Unary f) {
      return derivative([f](const Variable& v) { return f(v); }, x, 2, Dtype::kFloat16);
    };
    near(second(F::log2), -1 / (x * x * std::log(2)));
    near(second(F::log10), -1 / (x * x * std::log(10)));
    near(second(F::log1p), -1 / ((x + 1) * (x + 1)));
  }
}

TEST_P(Edges, ConditionsAreBool) {
  const Variable x(draw({2, 3}));
  const Array positive = greater(x.data(), 0);
  EXPECT_NO_THROW(F::where(positive, x, 0.0));
  const std::string text = error_of<InvalidType>([&] { F::where(x.data(), x, 0.0); });
  EXPECT_EQ(text,
            "Invalid operation is performed in: Where (Forward)\n\nExpect: condition.dtype == "
            "bool\nActual: float64 != bool\nInputs: condition float64 (2, 3)\nThe condition is a "
            "bool array: compare, as in greater(x, 0), or convert it with .astype(dtype::bool_).");
  EXPECT_THROW(F::where(positive.astype(Dtype::kInt32), x, 0.0), InvalidType);
}

CATENA_ON_DEVICES(Edges);

}  // namespace
}  // namespace catena
