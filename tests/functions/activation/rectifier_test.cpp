// The layers PReLU and Maxout, gradients on the kinks of activations, and what becomes of NaN and
// infinity; values elsewhere are in the function oracle, gradients have records.
#include <limits>

#include "catena/functions/activation/elementwise.h"
#include "catena/functions/activation/maxout.h"
#include "catena/functions/activation/prelu.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/transpose.h"
#include "catena/functions/connection/convolution_2d.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using Unary = std::function<Variable(const Variable&)>;

class Rectifier : public OnDevice {
 protected:
  // Gradients of a sum of f at the points.
  std::vector<double> slopes(const Unary& f, const std::vector<double>& points,
                             Dtype dtype = Dtype::kFloat64) const {
    const Variable x(array(points).astype(dtype).to(device()));
    F::sum(f(x)).backward();
    return x.grad().to_vector<double>();
  }
  std::vector<double> values(const Unary& f, const std::vector<double>& points,
                             Dtype dtype = Dtype::kFloat64) const {
    return f(Variable(array(points).astype(dtype).to(device()))).data().to_vector<double>();
  }
};
using Numbers = std::vector<double>;

// The kernel against the formula, which create_graph takes: planes, channels last, single slopes,
// extents that no kernel of a GPU serves.
TEST_P(Rectifier, GradientsOfPreluAreThoseOfItsFormula) {
  const std::pair<Shape, Shape> shapes[] = {{{3, 5, 16, 16}, {5}},   {{2, 3, 15, 11}, {3}},
                                            {{2, 8, 3, 3}, {8}},     {{200, 24}, {24}},
                                            {{67, 13}, {13}},        {{2, 3, 4, 7}, {}},
                                            {{4, 6, 5}, {6, 5}},     {{2, 2, 130, 130}, {2}},
                                            {{5, 260, 2, 3}, {260}}, {{300}, {}}};
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kBFloat16})
    for (const auto& [shape, slope] : shapes)
      for (const bool last : {false, true}) {
        const Array drawn = draw(shape, -2, 2).astype(dtype);
        const bool images = shape.size() == 4 && last;
        const Variable x(images ? F::channels_last(drawn) : drawn);
        const Variable W(draw(slope, -1, 1).astype(dtype));
        const Variable y = F::prelu(x, W);
        y.set_grad(draw(shape, 0.5, 1.5).astype(dtype));
        y.backward();
        const Array gx = x.grad(), gW = W.grad();
        const Variable x2(x.data()), W2(W.data()), y2 = F::prelu(x2, W2);
        y2.set_grad(y.grad());
        y2.backward({.create_graph = true});
        const std::string what = message(shape, " ", slope, " ", dtype, " ", last);
        EXPECT_EQ(testing::difference(gx, x2.grad(), 0, 0), "") << what;
        EXPECT_EQ(gx.is_dense() && gx.order() == x.data().order(), true) << what;
        const double error = dtype == Dtype::kFloat64   ? 1e-12
                             : dtype == Dtype::kFloat32 ? 1e-5
                                                        : 2e-2;
        const double size = double(drawn.size()) / double(W.data().size());
        EXPECT_EQ(testing::difference(gW, W2.grad(), error, error * size), "") << what;
      }
}

TEST_P(Rectifier, HaveTheirSideOfEachKink) {
  EXPECT_EQ(slopes([](const Variable& x) { return F::clipped_relu(x, 2); }, {-1, 0, 1, 2, 3}),
            (Numbers{0, 0, 1, 0, 0}));
  EXPECT_EQ(slopes([](const Variable& x) { return F::relu6(x); }, {0, 5.5, 6}), (Numbers{0, 1, 0}));
  EXPECT_EQ(slopes([](const Variable& x) { return F::hard_tanh(x); }, {-1, -0.5, 1}),
            (Numbers{0, 1, 0}));
  EXPECT_EQ(slopes([](const Variable& x) { return F::hard_sigmoid(x); }, {-2.5, 0, 2.5}),
            (Numbers{0, 0.2, 0}));
  EXPECT_EQ(slopes([](const Variable& x) { return F::hard_swish(x); }, {-3, 3, 4, -4}),
            (Numbers{0, 1, 1, 0}));
  for (const Unary& shrink : {Unary([](const Variable& x) { return F::hard_shrink(x); }),
                              Unary([](const Variable& x) { return F::soft_shrink(x); })})
    EXPECT_EQ(slopes(shrink, {-0.75, -0.5, 0, 0.5, 0.75}), (Numbers{1, 0, 0, 0, 1}));
  EXPECT_EQ(slopes([](const Variable& x) { return F::leaky_relu(x); }, {-1, 0, 1}),
            (Numbers{0.2, 1, 1}));
  EXPECT_EQ(slopes([](const Variable& x) { return F::elu(x, 3.0); }, {0, 1}), (Numbers{1, 1}));
}

TEST_P(Rectifier, LeakySlopeAtZeroAndBelow) {
  const Variable x(array(Numbers{-2, 0, 3}).to(device())), slope(array(0.5).to(device()));
  const Variable y = F::leaky_relu(x, slope);
  y.set_grad(array(Numbers{10, 20, 30}).to(device()));
  y.backward();
  EXPECT_EQ(slope.grad().item<double>(), -20);
  EXPECT_EQ(x.grad().to_vector<double>(), (Numbers{5, 20, 30}));
}

// What networks reach in 16 bits and beyond: finite numbers give finite results and slopes.
TEST_P(Rectifier, AreFiniteForLargeNumbersAndKeepNaN) {
  const std::pair<const char*, Unary> all[] = {
      {"clipped_relu", [](const Variable& x) { return F::clipped_relu(x); }},
      {"hard_tanh", [](const Variable& x) { return F::hard_tanh(x); }},
      {"hard_sigmoid", [](const Variable& x) { return F::hard_sigmoid(x); }},
      {"hard_swish", [](const Variable& x) { return F::hard_swish(x); }},
      {"hard_shrink", [](const Variable& x) { return F::hard_shrink(x); }},
      {"soft_shrink", [](const Variable& x) { return F::soft_shrink(x); }},
      {"leaky_relu", [](const Variable& x) { return F::leaky_relu(x); }},
      {"elu", [](const Variable& x) { return F::elu(x); }},
      {"selu", [](const Variable& x) { return F::selu(x); }},
      {"gelu", [](const Variable& x) { return F::gelu(x); }},
      {"gelu_tanh", [](const Variable& x) { return F::gelu_tanh(x); }},
      {"silu", [](const Variable& x) { return F::silu(x); }},
      {"mish", [](const Variable& x) { return F::mish(x); }},
      {"log_sigmoid", [](const Variable& x) { return F::log_sigmoid(x); }},
      {"softsign", [](const Variable& x) { return F::softsign(x); }}};
  const Numbers points{-3e38, -1e20, -6e4, -100, -0.0, 100, 6e4, 1e20, 3e38};
  for (const auto& [name, f] : all) {
    SCOPED_TRACE(name);
    for (const double v : values(f, points, Dtype::kFloat32)) EXPECT_TRUE(std::isfinite(v)) << v;
    for (const double v : slopes(f, points, Dtype::kFloat32)) EXPECT_TRUE(std::isfinite(v)) << v;
    EXPECT_TRUE(std::isnan(values(f, {std::nan("")})[0]));
  }
}

TEST_P(Rectifier, SmallTailsKeepTheirDigits) {
  const double x = -6;
  EXPECT_NEAR(values([](const Variable& v) { return F::gelu(v); }, {x}, Dtype::kFloat32)[0] /
                  (x * std::erfc(-x / std::sqrt(2.0)) / 2),
              1, 1e-5);
  EXPECT_NEAR(values([](const Variable& v) { return F::mish(v); }, {-20}, Dtype::kFloat32)[0] /
                  (-20 * std::exp(-20.0)),
              1, 1e-5);
}

// Where the curve is nearly straight, its curvature is a product of small and large numbers.
TEST_P(Rectifier, TailsOfGeluTanhCurveAsTheyShould) {
  for (const double at : {5.0, -5.0}) {
    const Variable x(array({at}).to(device()));
    F::gelu_tanh(x).backward({.create_graph = true});
    const Variable slope = x.grad_variable();
    x.set_grad({});
    slope.backward();
    EXPECT_NEAR(x.grad().item<double>() / -9.934132224996203e-06, 1, 1e-9);
  }
}

TEST_P(Rectifier, PReLUStartsWithOneQuarterAndLearns) {
  const DeviceScope scope(device());
  F::PReLU one, channels({3}, {.init = 0.5}), wide({}, {.init = 0.1, .dtype = Dtype::kFloat64});
  EXPECT_EQ(one.W.shape(), Shape());
  EXPECT_EQ(one.W.dtype(), Dtype::kFloat32);
  EXPECT_EQ(one.W.device(), device());
  EXPECT_EQ(one.W.data().item<float>(), 0.25f);
  const F::PReLU precise({}, {.dtype = Dtype::kFloat64});
  EXPECT_EQ(precise.W.data().item<double>(), 0.25);
  EXPECT_EQ(precise.W.dtype(), Dtype::kFloat64);
  EXPECT_EQ(channels.W.data().to_vector<float>(), (std::vector<float>{0.5f, 0.5f, 0.5f}));
  ASSERT_EQ(one.named_parameters().size(), 1u);
  EXPECT_EQ(one.named_parameters()[0].first, "W");
  wide.zero_grads();
  const Array x = array({{-1.0, 2.0}, {-3.0, 4.0}}).to(device());
  F::sum(wide(x)).backward();
  F::sum(wide(x)).backward();  // accumulates
  EXPECT_EQ(wide.W.grad().item<double>(), -8);
}

TEST_P(Rectifier, PReLURefusesWhatMakesNoSense) {
  EXPECT_EQ(error_of<DtypeError>([] { F::PReLU({}, {.dtype = Dtype::kInt32}); }),
            "PReLU: expected a floating dtype, got int32");
  EXPECT_EQ(error_of<ValueError>([] {
              F::PReLU({2, -1});
            }),
            "PReLU: expected extents of at least 0, got (2, -1)");
  F::PReLU a;
  const F::PReLU b = std::move(a);
  EXPECT_EQ(error_of<ValueError>([&] { a(draw({2})); }),
            "PReLU: this layer has no slopes; it was moved from");
}

TEST_P(Rectifier, MaxoutIsTheLargestOfItsPool) {
  const DeviceScope scope(device());
  const Array W = draw({6, 4}, -1, 1, 3), b = draw({6}, -1, 1, 4), x = draw({5, 4});
  const F::Maxout flat(4, 2, 3, {.initialW = W, .initial_bias = b});
  const F::Maxout pooled(4, 2, 3,
                         {.initialW = W.reshape({2, 3, 4}), .initial_bias = b.reshape({2, 3})});
  const std::vector<double> all = F::linear(x, W, b).data().to_vector<double>();
  const std::vector<double> y = flat(x).data().to_vector<double>();
  ASSERT_EQ(y.size(), 10u);
  for (size_t i = 0; i < 10; ++i)
    EXPECT_EQ(y[i], std::max({all[3 * i], all[3 * i + 1], all[3 * i + 2]}));
  EXPECT_EQ(testing::difference(pooled(x).data(), flat(x).data()), "");
  EXPECT_EQ(flat.pool_size(), 3);
  EXPECT_EQ(
      testing::difference(flat(x.reshape({1, 5, 4})).data(), flat(x).data().reshape({1, 5, 2})),
      "");
  const F::Maxout copy = flat;
  EXPECT_EQ(copy.named_parameters()[1].first, "linear/b");
  EXPECT_EQ(error_of<ValueError>([] { F::Maxout(4, 2, 0); }),
            "Maxout: expected a pool_size of at least 1, got 0");
  EXPECT_THROW(F::Maxout(4, 2, 3, {.initialW = draw({2, 4})}), ShapeError);
}

// Of pools along the last axis and along one before it: zeros of both signs are equal, infinities
// are numbers, and a pool with NaN gives no gradient.
TEST_P(Rectifier, MaxoutGivesItsGradientToAllThatAreLargest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const Numbers x{1, 2, 2, 0.5, -0.0, 0, -1, 0, nan, 1, nan, 2, -inf, -inf, -inf, -inf};
  const Numbers slopes_of{0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1};
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    const auto pools = [](const Variable& v) { return F::maxout(F::reshape(v, {2, 8}), 4); };
    EXPECT_EQ(slopes(pools, x, dtype), slopes_of) << dtype;
    const auto columns = [](const Variable& v) {
      return F::maxout(F::transpose(F::reshape(v, {4, 4})) * 1.0, 4, 0);
    };
    EXPECT_EQ(slopes(columns, x, dtype), slopes_of) << dtype;
  }
}

CATENA_ON_DEVICES(Rectifier);

}  // namespace
}  // namespace catena
