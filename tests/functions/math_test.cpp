// Every differentiable row of the element-wise table, on every device.
#include "functions/functions_test_util.h"

#include <regex>

#include "catena/array/elementwise.h"
#include "catena/array/manipulation.h"
#include "catena/autograd/function_node.h"
#include "catena/functions/activation/elementwise.h"
#include "catena/kernels/elementwise_constants.h"
#include "functions/spread.h"
#include "kernels/elementwise_rows.h"

namespace catena {
namespace functions {
// Gradient rows are functions too, though no public ones.
#define CATENA_EW1(functor, name, ...) Variable name(const VariableOperand& x);
#define CATENA_EW2(functor, name, ...) \
  Variable name(const VariableOperand& x0, const VariableOperand& x1);
#define CATENA_EW3(functor, name, ...) \
  Variable name(const VariableOperand& x0, const VariableOperand& x1, const VariableOperand& x2);
#include "catena/kernels/detail/elementwise_activation.def"
#include "catena/kernels/detail/elementwise_arithmetic.def"
#include "catena/kernels/detail/elementwise_gradient.def"
#include "catena/kernels/detail/elementwise_math.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
}  // namespace functions

namespace {

struct Row {
  ElementwiseOp op;
  std::function<Variable(const Variables&)> apply;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> list = {
#define CATENA_EW1(functor, name, ...) \
  {ElementwiseOp::k##name, [](const Variables& x) { return F::name(x[0]); }},
#define CATENA_EW2(functor, name, ...) \
  {ElementwiseOp::k##name, [](const Variables& x) { return F::name(x[0], x[1]); }},
#define CATENA_EW3(functor, name, ...) \
  {ElementwiseOp::k##name, [](const Variables& x) { return F::name(x[0], x[1], x[2]); }},
#include "catena/kernels/detail/elementwise_activation.def"
#include "catena/kernels/detail/elementwise_arithmetic.def"
#include "catena/kernels/detail/elementwise_gradient.def"
#include "catena/kernels/detail/elementwise_math.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
  };
  return list;
}

// Samples of operand k in a row's range; a condition is bool.
Array sample(const ElementwiseInfo& row, int k, const Shape& shape, Device device,
             Dtype dtype = Dtype::kFloat64) {
  if (k == 0 && row.first_is_bool()) return random_array(shape, 0, 1, Dtype::kBool, device, 7);
  return spread_array(shape, row.low, row.high, dtype, device, k);
}

// Operands that are not constants of the call.
int free_operands(const Row& row) {
  int count = 0;
  for (int k = 0; k < info(row.op).inputs; ++k) count += !constant_sample(row.op, k);
  return count;
}

Arrays samples(const Row& row, const Shape& shape, Device device, Dtype dtype = Dtype::kFloat64) {
  Arrays result;
  for (int k = 0; k < free_operands(row); ++k)
    result.push_back(sample(info(row.op), k, shape, device, dtype));
  return result;
}

// The row of its free operands; the others get their samples, which come last.
Variable apply(const Row& row, Variables xs) {
  for (int k = static_cast<int>(xs.size()); k < info(row.op).inputs; ++k)
    xs.push_back(Variable::constant(
        full({}, constant_sample(row.op, k).value(), {xs[0].dtype(), xs[0].device()})));
  return row.apply(xs);
}
VariableFunction as_function(const Row& row) {
  return [&row](const Variables& xs) { return Variables{apply(row, xs)}; };
}

template <class Test>
void for_each_row(Test test) {
  for (const Row& row : rows()) {
    if (!info(row.op).differentiable) continue;
    SCOPED_TRACE(info(row.op).name);
    test(row, info(row.op));
  }
}

// A gradient column: what it saves, and its expression.
constexpr unsigned None = 0, X0 = 1, X1 = 2, X2 = 4, Y = 8;
struct Column {
  unsigned saves = None;
  std::string expression = "";
};

bool mentions(const std::string& expression, const std::string& name) {
  return std::regex_search(expression, std::regex("\\b" + name + "\\b"));
}
void expect_saved(const char* row, std::initializer_list<Column> columns) {
  for (const auto& [saves, expression] : columns) {
    unsigned read = None;
    if (mentions(expression, "x0")) read |= X0;
    if (mentions(expression, "x1")) read |= X1;
    if (mentions(expression, "x2")) read |= X2;
    if (mentions(expression, "y")) read |= Y;
    EXPECT_EQ(saves, read) << row << ": " << expression;
  }
}

// Less would not compile, more would keep memory for nothing.
TEST(MathTable, EveryGradientSavesWhatItReads) {
  const Column ND;
#define CATENA_G(saves, ...) \
  Column { saves, #__VA_ARGS__ }
#define CATENA_K(sample) ND
#define CATENA_EW1(functor, name, caption, types, form, cost, low, high, ...) \
  expect_saved(#name, {__VA_ARGS__});
#define CATENA_EW2 CATENA_EW1
#define CATENA_EW3 CATENA_EW1
#include "catena/kernels/detail/elementwise.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
#undef CATENA_G
#undef CATENA_K
}

// Tests bind the constants behind the other operands.
TEST(MathTable, ConstantsComeLast) {
  for (const Row& row : rows()) {
    const int free = free_operands(row);
    for (int k = 0; k < info(row.op).inputs; ++k)
      EXPECT_EQ(constant_sample(row.op, k).has_value(), k >= free) << info(row.op).name;
  }
}

const Shape kShape{3, 4};

double smallest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double smallest = std::abs(a[0] - b[0]);
  for (size_t i = 1; i < a.size(); ++i) smallest = std::min(smallest, std::abs(a[i] - b[i]));
  return smallest;
}

// A gradient that is right at positive numbers only must be seen, and kinks have no gradient: they
// are at 0 and where two operands are equal.
TEST(MathTable, SamplesHaveBothSignsAndNoKinks) {
  for_each_row([&](const Row& row, const ElementwiseInfo& i) {
    std::vector<std::vector<double>> operands;
    for (const Array& a : samples(row, kShape, cpu())) {
      if (is_float(a.dtype())) operands.push_back(a.to_vector<double>());
    }
    for (size_t k = 0; k < operands.size(); ++k) {
      const std::vector<double>& x = operands[k];
      EXPECT_GE(x.size(), 12u);
      const auto negative = std::count_if(x.begin(), x.end(), [](double v) { return v < 0; });
      const bool has_both = i.low < 0 && i.high > 0;
      EXPECT_TRUE(!has_both || (negative >= 1 && negative <= 11)) << negative;
      EXPECT_TRUE(i.low != -i.high || negative == 6) << negative;
      EXPECT_GT(smallest_difference(x, std::vector<double>(x.size(), 0.0)), 1e-3);
      for (size_t other = 0; other < k; ++other)
        EXPECT_GT(smallest_difference(x, operands[other]), 1e-3) << k << " and " << other;
    }
  });
}

class Math : public OnDevice {};

TEST_P(Math, GradientsOfEveryRow) {
  for_each_row([&](const Row& row, const ElementwiseInfo& i) {
    expect_gradients(as_function(row), samples(row, kShape, device()), i.name);
  });
}

TEST_P(Math, GradientsOfEveryRowWithOtherLayouts) {
  for_each_row([&](const Row& row, const ElementwiseInfo& i) {
    Array (*const layouts[])(const Array&) = {padded, transposed_layout, reversed_layout};
    for (size_t first = 0; first < std::size(layouts); ++first) {
      Arrays inputs = samples(row, kShape, device());
      for (size_t k = 0; k < inputs.size(); ++k) inputs[k] = layouts[(first + k) % 3](inputs[k]);
      expect_gradients(as_function(row), inputs, message(i.name, " layout ", first));
    }
  });
}

TEST_P(Math, GradientsOfEveryRowWithBroadcasting) {
  for_each_row([&](const Row& row, const ElementwiseInfo& i) {
    const int inputs_of_row = free_operands(row);
    if (inputs_of_row < 2) return;
    const Shape shapes[] = {{3, 1, 2}, {4, 1}, {}};
    for (int turn = 0; turn < 3; ++turn) {
      Arrays inputs;
      for (int k = 0; k < inputs_of_row; ++k)
        inputs.push_back(sample(i, k, shapes[(k + turn) % 3], device()));
      expect_gradients(as_function(row), inputs, message(i.name, " turn ", turn));
    }
  });
}

TEST_P(Math, ZeroSizeAndScalarShapes) {
  for_each_row([&](const Row& row, const ElementwiseInfo& i) {
    EXPECT_NO_THROW(
        check_backward(as_function(row), samples(row, {}, device()), tolerance(1e-5, 1e-6, 1e-5)));
    Variables xs;
    for (const Array& a : samples(row, {0, 3}, device()))
      xs.push_back(is_float(a.dtype()) ? Variable(a) : Variable::constant(a));
    const Variable y = apply(row, xs);
    EXPECT_EQ(y.shape(), (Shape{0, 3}));
    y.set_grad(y.data());
    y.backward();
    for (const Variable& x : xs) {
      if (!x.requires_grad() || !x.grad().defined()) continue;
      EXPECT_EQ(x.grad().shape(), (Shape{0, 3}));
    }
  });
}

// Gradients in a narrow dtype against those in float64 of the same (rounded) inputs.
void expect_close_to_double(const Row& row, const ElementwiseInfo& i, Device device, Dtype dtype,
                            double tolerance) {
  const Arrays inputs = samples(row, kShape, device, dtype);
  Variables narrow, wide;
  for (const Array& a : inputs) {
    const bool is_condition = a.dtype() == Dtype::kBool;
    narrow.push_back(is_condition ? Variable::constant(a) : Variable(a));
    wide.push_back(is_condition ? Variable::constant(a) : Variable(a.astype(Dtype::kFloat64)));
  }
  const Array gy = random_array(kShape, 0.5, 1, dtype, device, 9);
  const Variable y = apply(row, narrow), reference = apply(row, wide);
  EXPECT_EQ(y.dtype(), dtype);
  y.set_grad(gy);
  reference.set_grad(gy.astype(Dtype::kFloat64));
  y.backward();
  reference.backward();
  for (size_t k = 0; k < narrow.size(); ++k) {
    if (!narrow[k].grad().defined()) continue;
    EXPECT_EQ(narrow[k].grad().dtype(), dtype);
    EXPECT_NO_THROW(assert_allclose(narrow[k].grad(), wide[k].grad(), tolerance, tolerance))
        << "input " << k;
  }
}

TEST_P(Math, NarrowDtypesAgreeWithDouble) {
  for_each_row([&](const Row& row, const ElementwiseInfo& i) {
    expect_close_to_double(row, i, device(), Dtype::kFloat32, 2e-5);
    expect_close_to_double(row, i, device(), Dtype::kFloat16, 3e-2);
    expect_close_to_double(row, i, device(), Dtype::kBFloat16, 0.3);
  });
}

TEST_P(Math, NumbersAreWeakOnEitherSide) {
  const Array x = draw({2, 3}, 0.5, 2, 1, Dtype::kFloat32);
  const Variable v(x);
  EXPECT_EQ((2.0 * v - 1 + 3 / v).dtype(), Dtype::kFloat32);
  for (const auto& f : std::vector<std::function<Variable(const Variable&)>>{
           [](const Variable& a) { return a * 2 + 1; }, [](const Variable& a) { return 2 - a; },
           [](const Variable& a) { return 2.5 / a; }, [](const Variable& a) { return a / 4; },
           [](const Variable& a) { return pow(a, 3); }, [](const Variable& a) { return pow(2, a); },
           [](const Variable& a) { return pow(a, -0.5); }, [](const Variable& a) { return -a; },
           [](const Variable& a) { return F::maximum(a, 1.2); },
           [](const Variable& a) { return abs(a - 1.1); },
           [](const Variable& a) { return F::clip(a, 0.8, 1.5); },
           [](const Variable& a) { return F::hypot(a, 2); },
           [](const Variable& a) { return F::arctan2(1.5, a); },
           [](const Variable& a) { return F::logaddexp(a, 0.5); }}) {
    expect_gradients(f, draw({2, 3}, 0.5, 2, 1));
  }
}

TEST_P(Math, ArraysAreConstants) {
  const Array c = draw({2, 3}, 1, 2, 3);
  expect_gradients([&](const Variable& a) { return c * a + a / c - c; }, draw({2, 3}, 1, 2, 1));
  const Variable x(draw({2, 3}));
  const Variable y = c - x;
  y.set_grad(ones_like(c));
  y.backward();
  EXPECT_EQ(testing::difference(x.grad(), full({2, 3}, -1.0, {Dtype::kFloat64, device()})), "");
}

TEST_P(Math, MixedDtypesGiveGradientsOfTheInputs) {
  const Variable x(draw({2, 3}, 1, 2, 1, Dtype::kFloat32)), y(draw({3}, 1, 2, 2));
  const Variable z = x * y;
  EXPECT_EQ(z.dtype(), Dtype::kFloat64);
  z.set_grad(ones_like(z.data()));
  z.backward();
  EXPECT_EQ(x.grad().dtype(), Dtype::kFloat32);
  EXPECT_EQ(y.grad().dtype(), Dtype::kFloat64);
  EXPECT_NO_THROW(assert_allclose(x.grad(), broadcast_to(y.data(), {2, 3}), 1e-6, 1e-6));
}

TEST_P(Math, ClipBetweenConstants) {
  const Array low = draw({3}, -1, 0, 5), high = draw({2, 1}, 0, 1, 6);
  expect_gradients([&](const Variable& a) { return F::clip(a, low, high); }, draw({2, 3}, -2, 2),
                   "array bounds");
  const Variable x(array({-1.0, -0.5, 0.0, 0.5, 1.0}).to(device()));
  const Variable y = F::clip(x, -0.5, 0.5);
  y.set_grad(ones_like(y.data()));
  y.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{0, 1, 1, 1, 0}));
}

// A bound or another constant that wants a gradient would not get one.
TEST_P(Math, ConstantsTakeNoGradient) {
  const Variable x(draw({2, 3})), alpha(draw({}, 0.1, 0.3));
  EXPECT_EQ(error_of<GradientError>([&] { F::elu(x, alpha); }),
            "elu: operand 1 is a constant of the function and gets no gradient, but it requires "
            "one; give a number or its data()");
  EXPECT_THROW(F::clip(x, -1, alpha), GradientError);
  const Variable y = F::elu(x, alpha.data());
  EXPECT_EQ(testing::difference(y.data(), F::elu(x.data(), alpha.data().item<double>()).data()),
            "");
}

TEST_P(Math, ParametersAreOperands) {
  const Parameter p(draw({2, 3}, 1, 2)), row(draw({3}, 1, 2, 1));
  const Variable x(draw({2, 3}, 1, 2, 2));
  const Variable y = F::sum(2.0 * p * x + x / p - p + x * row);
  y.backward();
  const Array& a = p.data();
  EXPECT_NO_THROW(
      assert_allclose(p.grad(), 2.0 * x.data() - x.data() / (a * a) - 1.0, 1e-12, 1e-12));
  EXPECT_NO_THROW(assert_allclose(row.grad(), sum(x.data(), 0), 1e-12, 1e-12));
  row.zero_grad();
  F::sum(x + row).backward();
  F::sum(row * 3.0 + x).backward();  // accumulates
  EXPECT_NO_THROW(
      assert_allclose(row.grad(), full({3}, 8.0, {Dtype::kFloat64, device()}), 1e-12, 0));
}

TEST_P(Math, OneVariableOnBothSides) {
  expect_gradients([](const Variable& a) { return a * a + a / a - a; }, draw({2, 2}, 1, 2));
}

TEST_P(Math, IntegersThatWantGradientsAreRefused) {
  const Variable t = Variable::constant(draw({3}, 0, 9, 0, Dtype::kInt32));
  EXPECT_EQ((t + 1).dtype(), Dtype::kInt32);
  EXPECT_FALSE((t + 1).creator());
}

TEST_P(Math, WhatNeedsNoGradientLeavesNoGraph) {
  const Variable x(draw({2, 3})), frozen(draw({2, 3}), Volatile::on);
  EXPECT_TRUE(F::exp(x).creator());
  EXPECT_FALSE(F::exp(frozen).creator());
  EXPECT_TRUE(F::exp(frozen).is_volatile());
  EXPECT_FALSE(F::floor(x).creator());
  EXPECT_FALSE(F::exp(x.data()).creator());
  const NoBackprop off;
  EXPECT_FALSE((x * 2).creator());
}

TEST_P(Math, VolatileAndRecordedDoNotMix) {
  const Variable x(draw({2})), frozen(draw({2}), Volatile::on);
  EXPECT_THROW(x + frozen, GradientError);
}

TEST_P(Math, SavesOnlyWhatTheWantedGradientsUse) {
  // Storage that only the graph could hold is gone unless it was saved.
  const auto holds_input = [&](const std::function<Variable(const Variable&)>& f) {
    Array x = draw({4}, 1, 2);
    const StoragePtr storage = x.storage();
    const Variable v(x);
    x = Array();
    const Variable y = f(v);
    v.set_data(zeros({4}, {Dtype::kFloat64, device()}));
    return storage->reference_count() > 1;
  };
  EXPECT_FALSE(holds_input([](const Variable& a) { return a + 1.0; }));
  EXPECT_FALSE(holds_input([](const Variable& a) { return F::exp(a); }));
  EXPECT_FALSE(holds_input([](const Variable& a) { return a * 3.0; }));
  EXPECT_FALSE(holds_input([](const Variable& a) { return a * a.data().copy(); }));
  EXPECT_TRUE(holds_input([](const Variable& a) { return F::log(a); }));
  EXPECT_TRUE(holds_input([](const Variable& a) { return a * a; }));
}

TEST_P(Math, OverwritingWhatWasSavedIsAnError) {
  const Array a = draw({3}, 1, 2);
  const Variable x(a);
  const Variable y = F::log(x);
  a.fill(1.0);
  y.set_grad(ones_like(a));
  const std::string text = error_of<GradientError>([&] { y.backward(); });
  expect_contains(text, {"log"});
}

TEST_P(Math, Captions) {
  const Variable x(draw({2, 3}));
  EXPECT_EQ((x + 2).creator()->label(), "_ + 2");
  EXPECT_EQ((x * -2).creator()->label(), "_ * (-2)");
  EXPECT_EQ((3 - x).creator()->label(), "3 - _");
  EXPECT_EQ((x / x).creator()->label(), "_ / _");
  EXPECT_EQ((-x).creator()->label(), "__neg__");
  EXPECT_EQ(abs(x).creator()->label(), "|_|");
  EXPECT_EQ(F::relu(x).creator()->label(), "ReLU");
  EXPECT_EQ(F::exp(x).creator()->label(), "exp");
}

// Squares of the inputs overflow or vanish in float32.
TEST_P(Math, GradientsInTheWholeRangeOfTheDtype) {
  const auto gradients = [&](const VariableFunction& f, double a, double b) {
    const Variable x(full({}, a, {Dtype::kFloat32, device()}));
    const Variable y(full({}, b, {Dtype::kFloat32, device()}));
    f({x, y})[0].backward();
    return std::pair{x.grad().item<double>(), y.grad().defined() ? y.grad().item<double>() : 0};
  };
  const auto near = [](double got, double expected) { return std::abs(got / expected - 1) < 1e-6; };
  for (const double size : {2e19, 1e-23, 3.0}) {
    EXPECT_TRUE(near(
        gradients([](const Variables& v) { return Variables{v[0] / v[1]}; }, size, size).second,
        -1 / size));
  }
  for (const double size : {1e-30, 2e19, 3.0}) {
    const auto [gy, gx] =
        gradients([](const Variables& v) { return Variables{F::arctan2(v[0], v[1])}; }, size, size);
    EXPECT_TRUE(near(gy, 0.5 / size)) << gy;
    EXPECT_TRUE(near(gx, -0.5 / size)) << gx;
  }
  for (const double x : {1e20, -1e20, 5e8}) {
    const double gx =
        gradients([](const Variables& v) { return Variables{F::arcsinh(v[0])}; }, x, 0).first;
    EXPECT_TRUE(near(gx, 1 / std::abs(x))) << gx;
  }
  EXPECT_TRUE(
      near(gradients([](const Variables& v) { return Variables{F::arccosh(v[0])}; }, 1e20, 0).first,
           1e-20));
  const double huge = 2e38;
  const double ga =
      gradients([](const Variables& v) { return Variables{F::hypot(v[0], v[1]) * 4.0 * 0.5}; },
                huge, 1)
          .first;
  EXPECT_TRUE(near(ga, 2)) << ga;
}

TEST_P(Math, ShapesThatDoNotBroadcastAreNamed) {
  const Variable x(draw({2, 3})), y(draw({2, 4}));
  const std::string text = error_of<ShapeError>([&] { x + y; });
  expect_contains(text, {"add", "(2, 4)"});
}

CATENA_ON_DEVICES(Math);

}  // namespace
}  // namespace catena
