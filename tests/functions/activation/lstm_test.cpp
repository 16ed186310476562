// The layer LSTM against n_step_lstm, its state, and weights of Chainer 1.x; gradients of lstm have
// records.
#include "catena/functions/activation/lstm.h"

#include "catena/core/graph.h"
#include "catena/functions/connection/n_step_lstm.h"
#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using Numbers = std::vector<double>;

class LstmUnits : public OnDevice {
 protected:
  Variable variable(const Shape& shape, uint64_t seed) const {
    return Variable(draw(shape, -1, 1, seed));
  }
  // 3 inputs, 2 cells, weights of [-1, 1).
  F::LSTM layer() const {
    const DeviceScope scope(device());
    F::LSTM lstm(3, 2, {.dtype = Dtype::kFloat64});
    uint64_t seed = 10;
    for (const Parameter& p : lstm.parameters()) p.data().assign(draw(p.shape(), -1, 1, ++seed));
    return lstm;
  }
};

// x = w(y) + v(h): the tutorial's preparation of an LSTM.
TEST_P(LstmUnits, TUT_42_SumsOfLinearLayers) {
  const DeviceScope scope(device());
  const F::Linear w(5, 20), v(5, 20);
  const Array y = draw({4, 5}, -1, 1, 1, Dtype::kFloat32), h = draw({4, 5}, -1, 1, 2, y.dtype());
  const auto [c, h_next] = F::lstm(zeros_like(y), w(y) + v(h));
  EXPECT_EQ(c.shape(), (Shape{4, 5}));
  EXPECT_EQ(h_next.shape(), (Shape{4, 5}));
}

TEST_P(LstmUnits, TheLayerRunsSequences) {
  F::LSTM lstm = layer();
  const Variable x(draw({5, 4, 3}, -1, 1, 1));
  const Array gh = draw({5, 4, 2}, -1, 1, 2);
  const Variable Wx(lstm.upward.W.data()), Wh(lstm.lateral.W.data()), b(lstm.upward.b.data());
  const auto expected = F::n_step_lstm(1, 0, {}, {}, {Wx, Wh, b}, x);
  F::sum(expected.ys * gh).backward();
  for (int times = 0; times < 2; ++times) {  // a reset layer computes the same again
    lstm.zero_grads();
    lstm.reset_state();
    Variable loss = Variable::constant(zeros({}, {Dtype::kFloat64, device()}));
    for (int64_t t = 0; t < 5; ++t) {
      const Variable h = lstm(x.data()(t));
      EXPECT_NO_THROW(assert_allclose(h.data(), expected.ys.data()(t), 1e-12, 1e-12)) << t;
      loss += F::sum(h * gh(t));
    }
    EXPECT_NO_THROW(assert_allclose(lstm.c.data(), expected.cy.data()(0), 1e-12, 1e-12));
    loss.backward();
    EXPECT_NO_THROW(assert_allclose(lstm.upward.W.grad(), Wx.grad(), 1e-11, 1e-11));
    EXPECT_NO_THROW(assert_allclose(lstm.lateral.W.grad(), Wh.grad(), 1e-11, 1e-11));
    EXPECT_NO_THROW(assert_allclose(lstm.upward.b.grad(), b.grad(), 1e-11, 1e-11));
  }
}

// As the error of a smaller x says: the states of the others go on, and so do their gradients.
TEST_P(LstmUnits, SequencesMayEnd) {
  F::LSTM lstm = layer(), alone = lstm;
  const Variable x(draw({3, 2, 3})), same(x.data());
  lstm(x(0));
  lstm(x(1));
  lstm.set_state(lstm.c(Slice(0, 1)), lstm.h(Slice(0, 1)));
  F::sum(lstm(x(2)(Slice(0, 1)))).backward();
  for (int64_t t = 0; t < 3; ++t) alone(same(t)(Slice(0, 1)));
  F::sum(alone.h).backward();
  EXPECT_EQ(testing::difference(lstm.h.data(), alone.h.data(), 1e-12, 1e-12), "");
  EXPECT_EQ(testing::difference(x.grad(), same.grad(), 1e-12, 1e-12), "");
}

// The state that truncated backpropagation through time carries on.
TEST_P(LstmUnits, StatesCanBeCutAndSet) {
  F::LSTM lstm = layer();
  const Array x = draw({4, 3});
  lstm(x);
  lstm(x);
  const Array c = lstm.c.data(), h = lstm.h.data();
  lstm.h.unchain_backward();
  EXPECT_FALSE(lstm.h.creator() || lstm.c.creator());
  const Array next = lstm(x).data();
  lstm.reset_state();
  EXPECT_FALSE(lstm.h.defined() || lstm.c.defined());
  lstm.set_state(c, h);
  EXPECT_EQ(testing::difference(lstm(x).data(), next), "");
  F::LSTM copy = lstm;
  EXPECT_EQ(testing::difference(copy(x).data(), lstm(x).data()), "");
  EXPECT_EQ(error_of<ShapeError>([&] {
              lstm(draw({3, 3}));
            }),
            "LSTM: the state is that of 4 samples, x has 3; call reset_state() where other "
            "sequences begin. Where some of the sequences have ended, order them from the longest "
            "to the shortest and call set_state() with the first 3 rows of c and h, as in "
            "h(Slice(0, 3))");
  EXPECT_EQ(error_of<ShapeError>([&] {
              lstm(draw({5, 3}));
            }),
            "LSTM: the state is that of 4 samples, x has 5; call reset_state() where other "
            "sequences begin");
  EXPECT_EQ(error_of<ShapeError>([&] {
              lstm.set_state({}, draw({4, 3}));
            }),
            "LSTM: a state has shape (4, 3), expected (n, 2)");
  const auto refused = [&](Volatile first, Volatile second) {
    lstm.reset_state();
    lstm(Variable(x, first));
    return error_of<GradientError>([&] { lstm(Variable(x, second)); });
  };
  EXPECT_EQ(refused(Volatile::on, Volatile::off),
            "LSTM: the step before was volatile, this one is recorded; call reset_state() between "
            "them");
  EXPECT_EQ(refused(Volatile::off, Volatile::on),
            "LSTM: the step before was recorded, this one is volatile; call reset_state() between "
            "them");
}

TEST_P(LstmUnits, StatesFollowTheModel) {
  F::LSTM lstm = layer();
  const Array x = draw({4, 3});
  lstm(x);
  const Array expected = F::LSTM(lstm)(x).data();
  lstm.to(cpu(3));
  const Variable h = lstm(x.to(cpu(3)));
  EXPECT_EQ(h.device(), cpu(3));
  EXPECT_NO_THROW(assert_allclose(h.data(), expected, 1e-12, 1e-12));
}

TEST_P(LstmUnits, StartValuesAndNames) {
  const DeviceScope scope(device());
  const F::LSTM lstm(3, 2, {.forget_bias_init = 1});
  EXPECT_EQ(lstm.upward.b.data().to_vector<float>(), (std::vector<float>{0, 0, 0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(lstm.upward.W.shape(), (Shape{8, 3}));
  EXPECT_EQ(lstm.lateral.W.shape(), (Shape{8, 2}));
  EXPECT_FALSE(lstm.lateral.b.defined());
  EXPECT_EQ(lstm.in_size(), 3);
  EXPECT_EQ(lstm.out_size(), 2);
  EXPECT_EQ(F::LSTM(lstm).named_parameters()[2].first, "lateral/W");
  EXPECT_EQ(error_of<ValueError>([] { F::LSTM(3, 0); }),
            "LSTM: expected an in_size and an out_size of at least 1, got 3 and 0");
  EXPECT_THROW(F::LSTM(0, 2), ValueError);
  EXPECT_THROW(F::LSTM(3, 2, {.dtype = Dtype::kInt32}), DtypeError);
}

// Chainer 1.x had the gates of a cell side by side: row 4 j + g of W is gate g of cell j.
TEST_P(LstmUnits, TakesConvertedWeightsOfChainer) {
  const Array W = draw({8, 3}, -1, 1, 1), b = draw({8}, -1, 1, 2), x = draw({4, 3}, -1, 1, 3),
              c_prev = draw({4, 2}, -1, 1, 4);
  const Array blocks = W.reshape({2, 4, 3}).transpose({1, 0, 2}).reshape({8, 3});
  const Array bias = b.reshape({2, 4}).transpose({1, 0}).reshape({8});
  const Numbers h = F::lstm(c_prev, F::linear(x, blocks, bias)).h.data().to_vector<double>();
  const Numbers s = F::linear(x, W, b).data().to_vector<double>(),
                before = c_prev.to_vector<double>();
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (size_t i = 0; i < 8; ++i) {
    const double* gates = &s[4 * i];
    const double c = std::tanh(gates[0]) * sigmoid(gates[1]) + before[i] * sigmoid(gates[2]);
    EXPECT_NEAR(h[i], std::tanh(c) * sigmoid(gates[3]), 1e-12);
  }
}

CATENA_ON_DEVICES(LstmUnits);

TEST(LstmUnitsGraph, CapturesForwardAndBackward) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
    F::LSTM lstm(300, 257, {.dtype = dtype});
    const Array first = random_array({33, 300}, -1, 1, dtype, gpu, 1),
                second = random_array({33, 300}, -1, 1, dtype, gpu, 2), x = first.copy();
    Array result;
    const auto step = [&] {
      lstm.zero_grads();
      lstm.reset_state();
      lstm(x);
      const Variable h = lstm(x);
      F::sum(h * h).backward();
      result = h.data();
    };
    step();
    cuda::Graph graph = cuda::Graph::capture(gpu, step);
    x.assign(second);
    graph.launch();
    const Array replayed = result.copy(), gradient = lstm.lateral.W.grad().copy();
    step();
    EXPECT_EQ(testing::difference(replayed, result), "");
    const double error = dtype == Dtype::kFloat32 ? 1e-5 : 2e-2;
    EXPECT_NO_THROW(assert_allclose(gradient, lstm.lateral.W.grad(), error, error));
  }
}

TEST(LstmUnitsGraph, RefusesTheStateOfAnEarlierStep) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  F::LSTM lstm(4, 3);
  const Array x = random_array({2, 4}, -1, 1, Dtype::kFloat32, gpu, 1);
  lstm(x);
  expect_contains(error_of<Error>([&] { cuda::Graph::capture(gpu, [&] { lstm(x); }); }),
                  {"every replay of it; call reset_state()"});
}

}  // namespace
}  // namespace catena
