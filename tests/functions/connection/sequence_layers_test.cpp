// SequenceLSTM and SequenceGRU against each sequence by itself: lengths in any order, directions,
// layers, states, gradients of the weights, dropout, names. PyTorch computes them in the function
// oracle (tests/oracle/functions) and in tests/serializers/name_map_test.cpp.
#include "catena/functions/connection/sequence_layers.h"

#include "catena/array/manipulation.h"
#include "catena/autograd/backward.h"
#include "catena/functions/connection/stateful_gru.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

constexpr int64_t kIn = 3, kOut = 2;

// What the tests vary.
struct Form {
  bool lstm;
  int64_t layers;
  bool both, batch_first = false, nobias = false;
  F::GruForm gru = F::GruForm::kPytorch;
  Dtype dtype = Dtype::kFloat64;
  double dropout = 0;

  std::string text() const {
    return message(lstm                          ? "LSTM"
                   : gru == F::GruForm::kPytorch ? "GRU"
                                                 : "Chainer's GRU",
                   ", ", layers, " layers, ", both ? "both directions" : "one direction", ", ",
                   batch_first ? "batch first, " : "", nobias ? "no bias, " : "", dtype);
  }
  int64_t parts() const { return layers * (both ? 2 : 1); }
};
const Form kForms[] = {
    {true, 1, false},
    {true, 2, true},
    {true, 2, false, true, true},
    {true, 2, true, false, false, F::GruForm::kPytorch, Dtype::kFloat32},
    {false, 1, false},
    {false, 2, true},
    {false, 1, true, true, true},
    {false, 2, true, false, false, F::GruForm::kChainer},
    {false, 2, true, false, false, F::GruForm::kPytorch, Dtype::kFloat32},
};

// Either layer; results are hy, cy of an LSTM, and ys.
class Layer {
 public:
  explicit Layer(const Form& f) {
    random::seed(3);
    if (f.lstm)
      lstm_.emplace(kIn, kOut,
                    F::SequenceLSTMOptions{
                        f.layers, f.both, f.dropout, f.batch_first, f.nobias, {}, {}, f.dtype});
    else
      gru_.emplace(
          kIn, kOut,
          F::SequenceGRUOptions{
              f.gru, f.layers, f.both, f.dropout, f.batch_first, f.nobias, {}, {}, f.dtype});
    uint64_t seed = 20;
    for (const auto& [name, p] : parameters().named_parameters())
      p.data().assign(random_array(p.shape(), -1, 1, p.dtype(), p.device(), seed++));
  }
  F::SequenceWeights& parameters() const {
    if (lstm_) return *lstm_;
    return *gru_;
  }
  Variables operator()(const Variable& x, const std::optional<Array>& lengths = {},
                       const OptionalVariable& h = {}, const OptionalVariable& c = {}) const {
    if (lstm_) {
      const auto [hy, cy, ys] = (*lstm_)(x, lengths, h, c);
      return {hy, cy, ys};
    }
    const auto [hy, ys] = (*gru_)(x, lengths, h);
    return {hy, ys};
  }

 private:
  mutable std::optional<F::SequenceLSTM> lstm_;
  mutable std::optional<F::SequenceGRU> gru_;
};

// Padded sequences, their states, and gradients of the results.
struct Batch {
  Array x, h, c;
  Arrays gys;
};

// Results and gradients: of the states, and of the steps as (steps, n, ...).
struct Outcome {
  Arrays states, steps;
};
Outcome run(const Layer& layer, const Form& f, const Batch& b,
            const std::optional<Array>& lengths) {
  const auto steps_first = [&](const Array& a) {
    return f.batch_first ? a.transpose({1, 0, 2}) : a;
  };
  const Variable x(steps_first(b.x)), h(b.h), c(b.c);
  const Variables ys = layer(x, lengths, h, c);
  Arrays gys = b.gys;
  gys.back() = steps_first(gys.back());
  backward(ys, gys);
  Outcome o{{h.grad()}, {steps_first(ys.back().data()), steps_first(x.grad())}};
  if (f.lstm) o.states.push_back(c.grad());
  for (size_t i = 0; i + 1 < ys.size(); ++i) o.states.push_back(ys[i].data());
  return o;
}

// Sequence k alone; steps_of also leaves out what is behind its end.
Array states_of(const Array& a, int64_t k) { return a.at({Slice(), Slice(k, k + 1)}).copy(); }
Array steps_of(const Array& a, int64_t k, int64_t length) {
  return a.at({Slice(0, length), Slice(k, k + 1)}).copy();
}

class SequenceLayers : public OnDevice {
 protected:
  Batch batch(const Form& f, int64_t steps, const std::vector<int32_t>& lengths) const {
    const auto n = int64_t(lengths.size());
    const auto number = [&](const Shape& shape, uint64_t seed) {
      return draw(shape, -1, 1, seed, f.dtype);
    };
    const Shape states{f.parts(), n, kOut};
    Batch b{number({steps, n, kIn}, 1), number(states, 2), number(states, 3), {number(states, 4)}};
    if (f.lstm) b.gys.push_back(number(states, 5));
    b.gys.push_back(number({steps, n, f.both ? 2 * kOut : kOut}, 6));
    // What is behind an end is nobody's business.
    for (int64_t k = 0; k < n; ++k)
      for (const Array& a : {b.x, b.gys.back()})
        a.at({Slice(lengths[size_t(k)], none), k}).fill(std::nan(""));
    return b;
  }
};

TEST_P(SequenceLayers, AreThoseOfEachSequenceByItself) {
  const DeviceScope scope(device());
  for (const std::vector<int32_t>& lengths :
       {std::vector<int32_t>{2, 4, 1, 3}, {3, 3}, {1}, {5, 5, 5}}) {
    for (const Form& f : kForms) {
      SCOPED_TRACE(message(f.text(), ", first length ", lengths[0], " of ", lengths.size()));
      const double error = f.dtype == Dtype::kFloat64 ? 1e-12 : 3e-5;
      const Layer together(f), alone(f);
      const Batch b = batch(f, 5, lengths);
      const Outcome all = run(together, f, b, array(lengths));
      for (int64_t k = 0; k < int64_t(lengths.size()); ++k) {
        SCOPED_TRACE(k);
        const int64_t length = lengths[size_t(k)];
        Batch own{steps_of(b.x, k, length), states_of(b.h, k), states_of(b.c, k), {}};
        for (size_t i = 0; i + 1 < b.gys.size(); ++i) own.gys.push_back(states_of(b.gys[i], k));
        own.gys.push_back(steps_of(b.gys.back(), k, length));
        const Outcome expected = run(alone, f, own, {});
        for (size_t i = 0; i < all.states.size(); ++i)
          EXPECT_NO_THROW(
              assert_allclose(states_of(all.states[i], k), expected.states[i], error, error))
              << "state " << i;
        for (size_t i = 0; i < all.steps.size(); ++i) {
          EXPECT_NO_THROW(
              assert_allclose(steps_of(all.steps[i], k, length), expected.steps[i], error, error))
              << "steps " << i;
          EXPECT_EQ(sum(absolute(all.steps[i].at({Slice(length, none), k}))).item<double>(), 0);
        }
      }
      const Arrays got = together.parameters().gradients(),
                   expected = alone.parameters().gradients();
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NO_THROW(assert_allclose(got[i], expected[i], 10 * error, 10 * error))
            << together.parameters().parameter_names()[i];
    }
  }
}

TEST_P(SequenceLayers, HaveNumericalGradients) {
  const DeviceScope scope(device());
  for (const Form& f : {Form{true, 2, true}, Form{false, 2, true},
                        Form{false, 1, false, false, false, F::GruForm::kChainer}}) {
    const Layer layer(f);
    expect_gradients(
        [&](const Variables& v) {
          return layer(v[0], array({2, 3, 1}), v[1], v[2]);
        },
        {draw({3, 3, kIn}), draw({f.parts(), 3, kOut}, -1, 1, 1),
         draw({f.parts(), 3, kOut}, -1, 1, 2)},
        f.text());
  }
}

// Chainer's form is that of the layer that goes step by step.
TEST_P(SequenceLayers, OfChainersFormAreStatefulGru) {
  const DeviceScope scope(device());
  F::StatefulGRU steps(kIn, kOut, {.dtype = Dtype::kFloat64});
  F::SequenceGRU gru(kIn, kOut, {.form = F::GruForm::kChainer, .dtype = Dtype::kFloat64});
  EXPECT_EQ(gru.form(), F::GruForm::kChainer);
  for (const Parameter& p : steps.parameters()) p.data().assign(draw(p.shape(), -1, 1, 7));
  const auto& part = gru.parts[0];
  part.weight_ih.copy_from(
      concatenate({steps.W_r.W.data(), steps.W_z.W.data(), steps.W.W.data()}, 0));
  part.weight_hh.copy_from(
      concatenate({steps.U_r.W.data(), steps.U_z.W.data(), steps.U.W.data()}, 0));
  part.bias_ih.copy_from(
      concatenate({steps.W_r.b.data(), steps.W_z.b.data(), steps.W.b.data()}, 0));
  const Array x = draw({3, 2, kIn});
  const auto [hy, ys] = gru(x);
  for (int64_t t = 0; t < 3; ++t)
    EXPECT_NO_THROW(assert_allclose(steps(x(t)).data(), ys.data()(t), 1e-12, 1e-12)) << t;
  EXPECT_EQ(testing::difference(hy.data()(0), ys.data()(2)), "");
}

TEST_P(SequenceLayers, DropBetweenLayersInTrainState) {
  const DeviceScope scope(device());
  const Array x = draw({3, 2, kIn}), lengths = array({1, 3});
  for (Form f : {Form{true, 2, false}, Form{true, 2, true}, Form{false, 2, true}}) {
    const Layer kept(f);
    f.dropout = 0.5;
    const Layer layer(f);
    const auto ys = [&](const Layer& l) { return l(Variable(x), lengths).back().data(); };
    EXPECT_NE(testing::difference(ys(layer), ys(kept)), "") << f.text();
    layer.parameters().eval();
    EXPECT_EQ(testing::difference(ys(layer), ys(kept)), "") << f.text();
    Form single = f;
    single.layers = 1;
    const Layer dropped(single);
    single.dropout = 0;
    const Layer one(single);
    EXPECT_EQ(testing::difference(ys(dropped), ys(one)), "")
        << "behind the last layer: " << f.text();
  }
}

TEST_P(SequenceLayers, HavePyTorchsNames) {
  const DeviceScope scope(device());
  using Names = std::vector<std::string>;
  F::SequenceLSTM lstm(3, 2, {.layers = 2, .bidirectional = true});
  EXPECT_EQ(
      lstm.parameter_names(),
      (Names{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l0_reverse",
             "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse", "weight_ih_l1",
             "weight_hh_l1", "bias_ih_l1", "bias_hh_l1", "weight_ih_l1_reverse",
             "weight_hh_l1_reverse", "bias_ih_l1_reverse", "bias_hh_l1_reverse"}));
  EXPECT_EQ(lstm.parts[2].weight_ih.shape(), (Shape{8, 4}));
  EXPECT_EQ(lstm.layers(), 2);
  EXPECT_EQ(lstm.in_size(), 3);
  EXPECT_EQ(lstm.out_size(), 2);
  F::SequenceGRU gru(3, 2, {.nobias = true});
  EXPECT_EQ(gru.parameter_names(), (Names{"weight_ih_l0", "weight_hh_l0"}));
  EXPECT_EQ(gru.parts[0].weight_ih.shape(), (Shape{6, 3}));
  const F::SequenceGRU copy = gru;
  EXPECT_FALSE(copy.parts[0].weight_ih == gru.parts[0].weight_ih);
  EXPECT_EQ(testing::difference(copy.parts[0].weight_ih.data(), gru.parts[0].weight_ih.data()), "");
}

TEST_P(SequenceLayers, RefuseWhatMakesNoSense) {
  const DeviceScope scope(device());
  EXPECT_EQ(error_of<ValueError>([] { F::SequenceLSTM(0, 2); }),
            "SequenceLSTM: expected in_size, out_size and layers of at least 1, got 0, 2 and 1");
  EXPECT_EQ(error_of<ValueError>([] { F::SequenceGRU(3, 2, {.layers = 2, .dropout = 1}); }),
            "SequenceGRU: expected a dropout of [0, 1), got 1");
  EXPECT_EQ(error_of<ValueError>([] { F::SequenceGRU(3, 2, {.nobias = true, .initial_bias = 1}); }),
            "SequenceGRU: nobias and initial_bias contradict each other; leave out one of them");
  EXPECT_EQ(error_of<ValueError>([] {
              F::SequenceLSTM(3, 2, {.initialW = zeros({8, 3})});
            }),
            "SequenceLSTM: a start value is an array, but the weights have different shapes; give "
            "an initializer, or assign to the parameters in parts");
  EXPECT_THROW(F::SequenceLSTM(3, 2, {.dtype = dtype::int32}), DtypeError);

  F::SequenceLSTM lstm(3, 2, {.layers = 2});
  F::SequenceGRU gru(3, 2, {.batch_first = true});
  const Array x = draw({4, 2, 3}, -1, 1, 0, Dtype::kFloat32);
  EXPECT_EQ(error_of<ShapeError>([&] { lstm(x(0)); }),
            "SequenceLSTM: expected x as (steps, n, 3), got shape (2, 3)");
  EXPECT_EQ(error_of<ShapeError>([&] {
              gru(x.transpose({0, 2, 1}));
            }),
            "SequenceGRU: expected x as (n, steps, 3), got shape (4, 3, 2)");
  EXPECT_EQ(
      error_of<ShapeError>([&] {
        lstm(x, array({4, 1}), zeros({1, 2, 2}));
      }),
      "SequenceLSTM: the state hx has shape (1, 2, 2), expected (layers * directions, n, out) "
      "= (2, 2, 2)");
  EXPECT_EQ(error_of<ValueError>([&] {
              lstm(x, array({4, 5}));
            }),
            "PackedSequences: length 5 of sequence 1 is outside [1, 4]");
  EXPECT_THROW(lstm(x.astype(dtype::float64)), InvalidType);
  const F::SequenceLSTM taken = std::move(lstm);
  EXPECT_EQ(error_of<ValueError>([&] { lstm(x); }),
            "SequenceLSTM: this layer has no weights; it was moved from");
}

CATENA_ON_DEVICES(SequenceLayers);

}  // namespace
}  // namespace catena
