#include "catena/functions/connection.h"

#include "catena/autograd/function_node.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Connection : public OnDevice {
 protected:
  // 3 inputs, 2 outputs.
  F::Linear layer(bool bias = true, Dtype dtype = Dtype::kFloat64) const {
    DeviceScope scope(device());
    F::LinearOptions options;
    options.nobias = !bias;
    options.initialW = draw({2, 3}, -1, 1, 11, dtype);
    if (bias) options.initial_bias = draw({2}, -1, 1, 12, dtype);
    return F::Linear(3, 2, options);
  }
};

TEST_P(Connection, LinearComputesXWTransposedPlusB) {
  const F::Linear l = layer();
  const Array x = draw({4, 3}, -1, 1, 1);
  const Array expected = matmul(x, l.W.data().T()) + l.b.data();
  EXPECT_EQ(testing::difference(l(x).data(), expected, 1e-12, 1e-12), "");
  EXPECT_EQ(testing::difference(l(padded(x)).data(), expected, 1e-12, 1e-12), "");
  EXPECT_EQ(testing::difference(l(transposed_layout(x)).data(), expected, 1e-12, 1e-12), "");
  EXPECT_EQ(testing::difference(layer(false)(x).data(), matmul(x, l.W.data().T()), 1e-12, 1e-12),
            "");
}

TEST_P(Connection, LinearFlattensMoreAxes) {
  const F::Linear l = layer();
  const Array x = draw({4, 1, 3}, -1, 1, 1);
  EXPECT_EQ(testing::difference(l(x).data(), l(x.reshape({4, 3})).data()), "");
  const Variable v(x);
  const Variable y = l(v);
  y.set_grad(ones_like(y.data()));
  y.backward();
  EXPECT_EQ(v.grad().shape(), x.shape());
}

TEST_P(Connection, LinearGradients) {
  const Array W = draw({2, 3}, -1, 1, 11), b = draw({2}, -1, 1, 12);
  for (const Array& x :
       {draw({4, 3}), padded(draw({4, 3})), transposed_layout(draw({4, 3})), draw({4, 3, 1})}) {
    expect_gradients([](const Variables& v) { return Variables{F::linear(v[0], v[1], v[2])}; },
                     {x, W, b});
    expect_gradients([](const Variables& v) { return Variables{F::linear(v[0], v[1])}; }, {x, W});
    expect_gradients([](const Variables& v) { return Variables{F::linear_relu(v[0], v[1], v[2])}; },
                     {x, W, b});
  }
  expect_gradients([](const Variables& v) { return Variables{F::linear(v[0], v[1], v[2])}; },
                   {draw({4, 3}), transposed_layout(W), padded(b)});
}

TEST_P(Connection, LinearOfAnEmptyBatchGivesZeroGradients) {
  F::Linear l = layer();
  l.zero_grads();
  const Variable x(draw({0, 3}));
  const Variable y = l(x);
  EXPECT_EQ(y.shape(), (Shape{0, 2}));
  y.set_grad(y.data());
  y.backward();
  EXPECT_EQ(testing::difference(l.W.grad(), zeros_like(l.W.data())), "");
  EXPECT_EQ(testing::difference(l.b.grad(), zeros_like(l.b.data())), "");
}

TEST_P(Connection, ParameterGradientsAccumulateAndStartOver) {
  F::Linear l = layer();
  const Array x = draw({4, 3}, -1, 1, 1), gy = draw({4, 2}, -1, 1, 2);
  const auto run = [&] {
    const Variable y = l(x);
    y.set_grad(gy);
    y.backward();
  };
  l.W.grad().fill(99.0);  // zero_grads must make the next contribution overwrite
  l.zero_grads();
  run();
  const Array once = l.W.grad().copy(), bias_once = l.b.grad().copy();
  EXPECT_NO_THROW(assert_allclose(once, matmul(gy.T(), x), 1e-12, 1e-12));
  EXPECT_NO_THROW(assert_allclose(bias_once, sum(gy, 0), 1e-12, 1e-12));
  run();
  EXPECT_NO_THROW(assert_allclose(l.W.grad(), once * 2, 1e-12, 1e-12));
  EXPECT_NO_THROW(assert_allclose(l.b.grad(), bias_once * 2, 1e-12, 1e-12));
}

TEST_P(Connection, NarrowDtypesAgreeWithDouble) {
  for (const auto& [dtype, bound] :
       {std::pair{Dtype::kFloat32, 1e-5}, {Dtype::kFloat16, 1e-2}, {Dtype::kBFloat16, 1e-1}}) {
    F::Linear narrow = layer(true, dtype), wide = layer();
    wide.copy_parameters_from({Parameter(narrow.W.data().astype(Dtype::kFloat64)),
                               Parameter(narrow.b.data().astype(Dtype::kFloat64))});
    const Array x = draw({4, 3}, -1, 1, 1, dtype);
    const Variable a(x), b(x.astype(Dtype::kFloat64));
    for (const auto& [l, v] : {std::pair<F::Linear*, Variable>{&narrow, a}, {&wide, b}}) {
      l->zero_grads();
      const Variable y = (*l)(v);
      y.set_grad(ones_like(y.data()));
      y.backward();
    }
    EXPECT_EQ(a.grad().dtype(), dtype);
    EXPECT_NO_THROW(assert_allclose(a.grad(), b.grad(), bound, bound));
    EXPECT_NO_THROW(assert_allclose(narrow.W.grad(), wide.W.grad(), bound, bound));
    EXPECT_NO_THROW(assert_allclose(narrow.b.grad(), wide.b.grad(), bound, bound));
  }
}

TEST_P(Connection, LinearStartsAsLeCunNormal) {
  DeviceScope scope(device());
  random::seed(3);
  const F::Linear l(400, 300, {.wscale = 2, .bias = 0.5});
  EXPECT_EQ(l.W.dtype(), Dtype::kFloat32);
  EXPECT_EQ(l.W.shape(), (Shape{300, 400}));
  const std::vector<double> w = l.W.data().to_vector<double>();
  double mean = 0, square = 0;
  for (double v : w) {
    mean += v / double(w.size());
    square += v * v / double(w.size());
  }
  EXPECT_NEAR(mean, 0, 2e-3);
  EXPECT_NEAR(std::sqrt(square), 2 * std::sqrt(1.0 / 400), 1e-3);
  for (double v : l.b.data().to_vector<double>()) EXPECT_EQ(v, 0.5);
}

TEST_P(Connection, NamesAndCopiesItsParameters) {
  F::Linear l = layer();
  const auto named = l.named_parameters();
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].first, "W");
  EXPECT_EQ(named[1].first, "b");
  EXPECT_EQ(layer(false).named_parameters().size(), 1u);
  const F::Linear copy = l;
  EXPECT_FALSE(copy.W == l.W);
  EXPECT_EQ(testing::difference(copy.W.data(), l.W.data()), "");
}

TEST_P(Connection, ReusesTheInitialArrayWithoutACopy) {
  const Array W = draw({2, 3}, -1, 1, 0, Dtype::kFloat32);
  const F::Linear l(3, 2, {.nobias = true, .initialW = W});
  EXPECT_TRUE(l.W.data().same_body(W));
  EXPECT_FALSE(l.b.defined());
}

// Which of twenty layers it was.
TEST_P(Connection, MessagesOfLinearNameTheLayer) {
  struct Block : FunctionSet {
    F::Linear l1{3, 3}, l2{3, 2, {.nobias = true}};
    CATENA_FUNCTIONS(l1, l2)
  };
  struct Net : FunctionSet {
    Block block;
    std::vector<F::Linear> tail{F::Linear(2, 2), F::Linear(2, 2)};
    CATENA_FUNCTIONS(block, tail)
  } net;
  net.to(device());
  const auto text_of = [&](const F::Linear& layer, const Array& x) {
    return message_of<InvalidType>([&] { layer(x); });
  };
  const std::string text = text_of(net.block.l2, draw({4, 3}));
  EXPECT_EQ(text.find("Invalid operation is performed in: Linear 'block/l2' (Forward)\n\nExpect: "
                      "in_types[0].dtype == float32\nActual: float64 != float32\n"),
            0u)
      << text;
  EXPECT_NE(text.find(".astype(dtype::float32)"), std::string::npos) << text;
  EXPECT_NE(text.find("config().default_dtype = dtype::float32"), std::string::npos) << text;
  EXPECT_NE(text_of(net.tail[1], draw({4, 3}, -1, 1, 0, Dtype::kFloat32)).find("Linear 'tail/1'"),
            std::string::npos);
  const std::string integers = text_of(net.block.l1, draw({4, 3}, 0, 9, 0, Dtype::kInt64));
  EXPECT_NE(integers.find(".astype(dtype::float32)."), std::string::npos) << integers;
  EXPECT_NE(message_of<DeviceError>([&] {
              net.block.l1(ones({4, 3}, {dtype::float32, "cpu:7"}));
            }).find("linear 'block/l1': arrays on different devices"),
            std::string::npos);
}

TEST(LinearLayer, MovedFromIsRefused) {
  F::Linear a(4, 3);
  const F::Linear b = std::move(a);
  const Array x = ones({1, 4}, dtype::float32);
  EXPECT_EQ(b(x).shape(), (Shape{1, 3}));
  EXPECT_NE(message_of<ValueError>([&] { a(x); }).find("Linear: this layer has no weights"),
            std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { a.in_size(); }).find("moved from"), std::string::npos);
  EXPECT_THROW(a.out_size(), ValueError);
  EXPECT_THROW(a.W.data(), ValueError);
  EXPECT_EQ(a.parameters().size(), 0u);
  a.to("cpu:1");
  a.zero_grads();
  const F::Linear no_bias(3, 4, {.nobias = true});
  EXPECT_NE(message_of<ValueError>([&] { no_bias.b.data(); }).find("Parameter::data"),
            std::string::npos);
}

TEST_P(Connection, MessagesOfLinear) {
  const F::Linear l = layer();
  EXPECT_EQ(message_of<InvalidType>([&] {
              l(draw({4, 5}));
            }),
            "Invalid operation is performed in: Linear (Forward)\n\n"
            "Expect: prod(in_types[0].shape[1:]) == W.shape[1]\nActual: 5 != 3\n"
            "The layer takes (n, 3), n samples of 3 numbers each; the input has shape (4, 5).");
  EXPECT_EQ(message_of<InvalidType>([&] { l(draw({3})); }),
            "Invalid operation is performed in: Linear (Forward)\n\nExpect: in_types[0].ndim >= "
            "2\nActual: 1 < 2\nThe layer takes (n, 3), n samples of 3 numbers each; the input has "
            "shape (3,): one sample is x.reshape({1, -1}).");
  EXPECT_EQ(message_of<InvalidType>([&] {
              l(draw({4, 3}, 0, 1, 0, Dtype::kFloat32));
            }),
            "Invalid operation is performed in: Linear (Forward)\n\nExpect: in_types[0].dtype == "
            "float64\nActual: float32 != float64\nThe input is float32, the layer float64: convert "
            "the input with .astype(dtype::float64), or make arrays of float64 by "
            "config().default_dtype = dtype::float64.");
  EXPECT_THROW(F::Linear(0, 2), ValueError);
  EXPECT_THROW(F::Linear(3, 2, {.initialW = draw({3, 2})}), ShapeError);
  EXPECT_THROW(F::Linear(3, 2, {.dtype = Dtype::kInt32}), DtypeError);
}

TEST_P(Connection, MatmulOfEveryTransposition) {
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      const Array a = draw(ta ? Shape{3, 4} : Shape{4, 3}),
                  b = draw(tb ? Shape{2, 3} : Shape{3, 2}, -1, 1, 1);
      const auto f = [&](const Variables& v) { return Variables{F::matmul(v[0], v[1], ta, tb)}; };
      EXPECT_NO_THROW(assert_allclose(F::matmul(a, b, ta, tb).data(),
                                      matmul(ta ? a.T() : a, tb ? b.T() : b), 1e-12, 1e-12));
      expect_gradients(f, {a, b});
      expect_gradients(f, {padded(a), transposed_layout(b)});
    }
  }
}

TEST_P(Connection, MatmulTakesVectorsAsColumns) {
  const Array a = draw({3}), b = draw({3}, -1, 1, 1), m = draw({4, 3}, -1, 1, 2);
  EXPECT_EQ(F::matmul(a, b, true).shape(), (Shape{1, 1}));
  EXPECT_EQ(F::matmul(a, b, false, true).shape(), (Shape{3, 3}));
  EXPECT_EQ(F::matmul(m, b).shape(), (Shape{4, 1}));
  expect_gradients([](const Variables& v) { return Variables{F::matmul(v[0], v[1], true)}; },
                   {a, b});
  expect_gradients([](const Variables& v) { return Variables{F::matmul(v[0], v[1], false, true)}; },
                   {a, b});
  expect_gradients([](const Variables& v) { return Variables{F::matmul(v[0], v[1])}; }, {m, b});
}

TEST_P(Connection, BatchMatmulOfEveryTransposition) {
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      const Array a = draw(ta ? Shape{5, 3, 4} : Shape{5, 4, 3}),
                  b = draw(tb ? Shape{5, 2, 3} : Shape{5, 3, 2}, -1, 1, 1);
      const auto f = [&](const Variables& v) {
        return Variables{F::batch_matmul(v[0], v[1], ta, tb)};
      };
      const Array expected = matmul(ta ? a.swapaxes(1, 2) : a, tb ? b.swapaxes(1, 2) : b);
      EXPECT_NO_THROW(
          assert_allclose(f({Variable(a), Variable(b)})[0].data(), expected, 1e-12, 1e-12));
      expect_gradients(f, {a, b});
    }
  }
  expect_gradients([](const Variables& v) { return Variables{F::batch_matmul(v[0], v[1], true)}; },
                   {draw({5, 3}), draw({5, 3, 2}, -1, 1, 1)});
}

TEST_P(Connection, MessagesOfMatmul) {
  EXPECT_EQ(message_of<InvalidType>([&] {
              F::matmul(draw({4, 3}), draw({2, 5}));
            }),
            "Invalid operation is performed in: MatMul (Forward)\n\n"
            "Expect: in_types[0].shape[1] (2-D array) == in_types[1].shape[0] (2-D array)\nActual: "
            "3 != 2");
  EXPECT_THROW(F::matmul(draw({4, 3, 2}), draw({2, 5})), InvalidType);
  EXPECT_THROW(F::batch_matmul(draw({4, 3, 2}), draw({3, 2, 5})), InvalidType);
  EXPECT_THROW(F::matmul(draw({4, 3}), draw({3, 5}, 0, 1, 0, Dtype::kFloat32)), InvalidType);
}

CATENA_ON_DEVICES(Connection);

}  // namespace
}  // namespace catena
