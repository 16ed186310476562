// What Chainer's tutorial does with variables and functions; the names are those of the inventory's
// rows.
#include "catena/autograd/computational_graph.h"
#include "catena/autograd/function.h"
#include "catena/autograd/function_set.h"
#include "catena/autograd/gradient_check.h"
#include "catena/functions/connection/linear.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using testing::difference;

class FunctionTutorial : public OnDevice {
 protected:
  Array floats(const std::vector<float>& values, const Shape& shape) const {
    return array(values).astype(Dtype::kFloat32).reshape(shape).to(device());
  }
  Variable rows() const { return Variable(floats({1, 2, 3, 4, 5, 6}, {2, 3})); }
};
CATENA_ON_DEVICES(FunctionTutorial);

TEST_P(FunctionTutorial, TUT_01_ScalarArithmetic) {
  const Variable x(floats({5}, {1}));
  const Variable y = F::power(x, 2) - 2 * x + 1;
  y.backward();
  EXPECT_EQ(difference(y.data(), floats({16}, {1})), "");
  EXPECT_EQ(difference(x.grad(), floats({8}, {1})), "");
}

TEST_P(FunctionTutorial, TUT_02_RetainGrad) {
  const Variable x(floats({5}, {1}));
  const Variable z = 2 * x;
  const Variable y = F::power(x, 2) - z + 1;
  y.backward();
  EXPECT_FALSE(z.grad().defined());
  y.backward(true);
  EXPECT_EQ(difference(z.grad(), floats({-1}, {1})), "");
}

TEST_P(FunctionTutorial, TUT_03_SeveralElements) {
  const Variable x = rows();
  const Variable y = F::power(x, 2) - 2 * x + 1;
  EXPECT_THROW(y.backward(), GradientError) << "which gradient is not said";
  y.set_grad(ones_like(y.data()));
  y.backward();
  EXPECT_EQ(difference(x.grad(), floats({0, 2, 4, 6, 8, 10}, {2, 3})), "");
}

TEST_P(FunctionTutorial, TUT_04_Linear) {
  const DeviceScope scope(device());
  F::Linear f(3, 2);
  EXPECT_EQ(difference(f.b.data(), floats({0, 0}, {2})), "");
  f.W.copy_from(floats(
      {1.01847613f, 0.23103087f, 0.56507462f, 1.29378033f, 1.07823515f, -0.56423163f}, {2, 3}));
  const Array expected = floats({3.1757617f, 1.75755572f, 8.61950684f, 7.18090773f}, {2, 2});
  EXPECT_EQ(difference(f(rows()).data(), expected, 1e-5, 1e-5), "");
}

TEST_P(FunctionTutorial, TUT_05_GradientsOfLinear) {
  const DeviceScope scope(device());
  F::Linear f(3, 2);
  f.zero_grads();
  for (const float times : {1.0f, 2.0f}) {  // the second pass adds to the first
    const Variable y = f(rows());
    y.set_grad(ones_like(y.data()));
    y.backward();
    const Array row = floats({5, 7, 9, 5, 7, 9}, {2, 3});
    EXPECT_EQ(difference(f.W.grad(), row * times), "");
    EXPECT_EQ(difference(f.b.grad(), floats({2, 2}, {2}) * times), "");
  }
}

struct ExpAdd : Function {
  Arrays forward(const Arrays& x) override { return {exp(x[0]) + exp(x[1])}; }
  Arrays backward(const Arrays& x, const Arrays& gy) override {
    return {gy[0] * exp(x[0]), gy[0] * exp(x[1])};
  }
};

TEST_P(FunctionTutorial, TUT_20_ExpAdd) {
  const Variable x(draw({2, 3})), y(draw({2, 3}, -1, 1, 1));
  const Variable z = call(ExpAdd{}, x, y);
  EXPECT_EQ(z.device(), device());
  EXPECT_EQ(difference(z.data(), exp(x.data()) + exp(y.data())), "");
  F::sum(z).backward();
  EXPECT_EQ(difference(x.grad(), exp(x.data()), 1e-12), "");
  EXPECT_EQ(difference(y.grad(), exp(y.data()), 1e-12), "");
}

TEST_P(FunctionTutorial, TUT_24_NumericalGradients) {
  const Array x = draw({4, 3}), gy = ones({4, 3}, {Dtype::kFloat64, device()});
  const Array gx = numerical_grad([&] { return Arrays{x * x}; }, {x}, {gy}, 1e-4)[0];
  EXPECT_EQ(gx.device(), device());
  EXPECT_EQ(difference(gx, x * 2.0, 1e-7), "");
}

// x and its gradient on the test's device, the numerical one computed there and compared on the
// host: assert_allclose mixes devices.
TEST_P(FunctionTutorial, TUT_25_ReluAgainstNumericalGradients) {
  const Variable x(draw({3, 2}, -1, 1, 5, Dtype::kFloat32));
  const Variable y = F::relu(x);
  y.set_grad(draw({3, 2}, -1, 1, 6, Dtype::kFloat32));
  y.backward();
  const auto f = [&] { return Arrays{F::relu(x.data()).data()}; };
  const Arrays gx = numerical_grad(f, {x.data()}, {y.grad()}, 1e-3);
  EXPECT_EQ(gx[0].device(), device());
  EXPECT_NO_THROW(assert_allclose(gx[0].to(cpu(0)), x.grad(), 1e-3, 1e-3));
}

TEST_P(FunctionTutorial, TUT_33_DrawsTheGraph) {
  const Variable x(draw({2, 3}));
  const Variables results{F::sum(F::exp(x)), F::relu(x)};
  const ComputationalGraph g = build_computational_graph(results);
  EXPECT_EQ(g.nodes().size(), 7u);
  EXPECT_EQ(g.edges().size(), 6u);
  const std::string dot = g.dump();
  EXPECT_EQ(dot.find("digraph graphname{"), 0u);
  expect_contains(dot, {"0 [label=\"(2, 3), float64\",shape=\"oval\"];",
                        "[label=\"exp\",shape=\"box\"];", "0 -> 1;", "}\n"});
  expect_contains(build_computational_graph(results, false).dump(), {"Split", "hexagon"});
}

}  // namespace
}  // namespace catena
