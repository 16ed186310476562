// Records of n_step_lstm.
#include "catena/functions/connection/n_step_lstm.h"
#include "functions/connection/packed_inputs.h"

namespace catena {
namespace {

// Inputs: x, then hx and cx if there are states, then the weights.
size_t first_weight(bool states) { return states ? 3 : 1; }

FunctionRecord lstm_record(const char* variant, bool states, int64_t layers) {
  FunctionRecord r;
  r.function = "n_step_lstm";
  r.variant = variant;
  constexpr int64_t kInputs = 3, kCells = 2;
  for (const auto& [steps, n] : {std::pair<int64_t, int64_t>{3, 2}, {1, 2}, {2, 1}, {3, 0}}) {
    Shapes shapes{{steps, n, kInputs}};
    if (states) shapes.insert(shapes.end(), 2, Shape{layers, n, kCells});
    for (int64_t l = 0; l < layers; ++l)
      shapes.insert(shapes.end(), {Shape{4 * kCells, l == 0 ? kInputs : kCells},
                                   Shape{4 * kCells, kCells}, Shape{4 * kCells}});
    r.shapes.push_back(shapes);
  }
  r.call = [=](const Variables& v) {
    const Variables weights(v.begin() + static_cast<int64_t>(first_weight(states)), v.end());
    const auto [hy, cy, ys] = states ? F::n_step_lstm(layers, 0, v[1], v[2], weights, v[0])
                                     : F::n_step_lstm(layers, 0, {}, {}, weights, v[0]);
    return Variables{hy, cy, ys};
  };
  r.forward_launches = r.backward_launches = 1;
  return r;
}

FunctionRecord packed_lstm_record() {
  FunctionRecord r = lstm_record("packed", true, 2);
  for (Shapes& shapes : r.shapes) shapes[0] = {5, 4, 3}, shapes[1] = shapes[2] = {2, 4, 2};
  r.shapes.resize(2);
  r.shapes[1][0] = {2, 2, 3}, r.shapes[1][1] = r.shapes[1][2] = {2, 2, 2};  // of one length
  r.call = [](const Variables& v) {
    const auto [hy, cy, ys] =
        F::n_step_lstm(2, 0, v[1], v[2], Variables(v.begin() + 3, v.end()), packed(v[0]));
    return Variables{hy, cy, ys.padded()};
  };
  r.forward_launches = 7;  // of x, hx and cx, of the layers, of hy, cy and ys
  r.backward_launches = {};
  return r;
}

// Of one layer with 3 inputs and 2 cells.
F::LstmResult one_layer(const Draw& draw, const Shape& x, const Shape& hx = {1, 2, 2},
                        const Shape& Wh = {8, 2}, Dtype dtype = Dtype::kFloat64) {
  const Variables weights{Variable(draw({8, 3})), Variable(draw(Wh)), Variable(draw({8}))};
  return F::n_step_lstm(1, 0, draw(hx), {}, weights, draw(x, -1, 1, 0, dtype));
}

FunctionRecord lstm_errors() {
  FunctionRecord r = lstm_record("errors", false, 1);
  const std::string inputs = "\nInputs: xs float64 ",
                    weights = ", Wx[0] float64 (8, 3), Wh[0] float64 (8, 2), b[0] float64 (8,)\n";
  const std::string takes =
      "The layer takes (steps, n, 3), n sequences of 3 numbers at each step; "
      "the input has shape ";
  r.errors = {
      type_error(
          "NStepLSTM",
          [](const Draw& d) {
            one_layer(d, {4, 2, 5});
          },
          "Expect: xs.shape[2] == Wx[0].shape[1]\nActual: 5 != 3" + inputs + "(4, 2, 5)" + weights +
              takes + "(4, 2, 5)."),
      type_error(
          "NStepLSTM",
          [](const Draw& d) {
            one_layer(d, {4, 3});
          },
          "Expect: xs.ndim == 3\nActual: 2 != 3" + inputs + "(4, 3)" + weights + takes +
              "(4, 3): one sequence is x.expand_dims(1), one step is x.expand_dims(0)."),
      type_error(
          "NStepLSTM",
          [](const Draw& d) {
            one_layer(d, {4, 2, 3}, {1, 2, 2}, {6, 2});
          },
          "Expect: Wh[0].shape[0] == Wh[0].shape[1] * 4\nActual: 6 != 8" + inputs + "(4, 2, 3), " +
              "Wx[0] float64 (8, 3), Wh[0] float64 (6, 2), b[0] float64 (8,)\nA layer of 2 cells "
              "has Wx (8, 3), Wh (8, 2) and b (8,): four blocks of rows, a, i, f, o. The second "
              "layer's in is out."),
      type_error(
          "NStepLSTM",
          [](const Draw& d) {
            one_layer(d, {4, 2, 3}, {1, 3, 2});
          },
          "Expect: hx.shape[1] == xs.shape[1]\nActual: 3 != 2" + inputs +
              "(4, 2, 3), hx float64 (1, 3, 2)\nThe state hx is expected as (n_layers, n, "
              "out) = (1, 2, 2), of the dtype of the weights; it is float64 (1, 3, 2)."),
      type_error(
          "NStepLSTM",
          [](const Draw& d) {
            const Variables w{Variable(d({8, 3})), Variable(d({8, 2})), Variable(d({8}))};
            F::n_step_lstm(1, 0, {}, {}, w, packed(d({3, 2, 5})));
          },
          "Expect: xs.shape[1] == Wx[0].shape[1]\nActual: 5 != 3" + inputs + "(3, 5)" + weights +
              "The layer takes packed sequences of 3 numbers at each step; their rows have shape "
              "(3, 5)."),
      error<ValueError>(
          [](const Draw& d) {
            F::n_step_lstm(2, 0, {}, {}, {Variable(d({8, 3}))}, d({4, 2, 3}));
          },
          "NStepLSTM: 2 layers have 6 weights, Wx, Wh and b of each; got 1"),
      error<ValueError>(
          [](const Draw& d) {
            F::n_step_lstm(0, 0, {}, {}, {}, d({4, 2, 3}));
          },
          "NStepLSTM: expected n_layers of at least 1, got 0"),
      error<ValueError>(
          [](const Draw& d) {
            F::n_step_lstm(1, 1, {}, {}, {}, d({4, 2, 3}));
          },
          "NStepLSTM: expected a dropout ratio of [0, 1), got 1"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(n_step_lstm) {
  return {lstm_record("", false, 1), lstm_record("two layers, states", true, 2),
          packed_lstm_record(), lstm_errors()};
}

}  // namespace catena
