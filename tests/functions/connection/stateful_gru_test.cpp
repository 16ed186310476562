// The layer StatefulGRU: numerical gradients through its steps, and its state. Its values are
// compared with those of SequenceGRU in sequence_layers_test.cpp.
#include "catena/functions/connection/stateful_gru.h"

#include "catena/functions/activation/lstm.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class StatefulGru : public OnDevice {
 protected:
  // 3 inputs, 2 cells, weights of [-1, 1).
  F::StatefulGRU layer() const {
    const DeviceScope scope(device());
    F::StatefulGRU gru(3, 2, {.dtype = Dtype::kFloat64});
    uint64_t seed = 10;
    for (const Parameter& p : gru.parameters()) p.data().assign(draw(p.shape(), -1, 1, ++seed));
    return gru;
  }
};

TEST_P(StatefulGru, FlattensItsInput) {
  const DeviceScope scope(device());
  const Array x = draw({4, 3});
  for (const Shape& shape : {Shape{4, 3}, Shape{4, 3, 1}, Shape{4, 1, 3}}) {
    F::StatefulGRU gru = layer();
    F::LSTM lstm(3, 2, {.dtype = Dtype::kFloat64});
    for (int step = 0; step < 2; ++step) {
      EXPECT_EQ(gru(x.reshape(shape)).shape(), (Shape{4, 2}));
      EXPECT_EQ(lstm(x.reshape(shape)).shape(), (Shape{4, 2}));
    }
  }
}

TEST_P(StatefulGru, HasGradientsThroughItsSteps) {
  F::StatefulGRU gru = layer();
  const auto three_steps = [&](const Variables& v) {
    gru.reset_state();
    gru(v[0]);
    gru(v[1]);
    return Variables{gru(v[2])};
  };
  expect_gradients(three_steps,
                   {draw({2, 3}, -1, 1, 1), draw({2, 3}, -1, 1, 2), draw({2, 3}, -1, 1, 3)});
  gru.zero_grads();
  gru.reset_state();
  gru(draw({2, 3}));
  F::sum(gru(draw({2, 3}))).backward();
  for (const auto& [name, p] : gru.named_parameters())
    EXPECT_GT(sum(absolute(p.grad())).item<double>(), 0) << name;
}

TEST_P(StatefulGru, KeepsItsStateAndRefusesOthers) {
  F::StatefulGRU gru = layer();
  const Array x = draw({4, 3});
  gru(x);
  const Array state = gru.h.data();
  gru.h.unchain_backward();
  EXPECT_FALSE(gru.h.creator());
  const Array next = gru(x).data();
  gru.set_state(state);
  EXPECT_EQ(testing::difference(gru(x).data(), next), "");
  EXPECT_EQ(error_of<ShapeError>([&] {
              gru(draw({3, 3}));
            }),
            "StatefulGRU: the state is that of 4 samples, x has 3; call reset_state() where other "
            "sequences begin. Where some of the sequences have ended, order them from the longest "
            "to the shortest and call set_state() with the first 3 rows of h, as in "
            "h(Slice(0, 3))");
  EXPECT_EQ(error_of<ShapeError>([&] {
              gru.set_state(draw({4, 3}));
            }),
            "StatefulGRU: the state has shape (4, 3), expected (n, 2)");
  EXPECT_EQ(error_of<GradientError>([&] { gru(Variable(x, Volatile::on)); }),
            "StatefulGRU: the step before was recorded, this one is volatile; call reset_state() "
            "between them");
  EXPECT_THROW(F::StatefulGRU(0, 2), ValueError);
  gru.set_state(state);
  gru.to(cpu(3));
  EXPECT_NO_THROW(assert_allclose(gru(x.to(cpu(3))).data(), next, 1e-12, 1e-12));
}

CATENA_ON_DEVICES(StatefulGru);

}  // namespace
}  // namespace catena
