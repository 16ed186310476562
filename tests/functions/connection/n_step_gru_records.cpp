// Records of n_step_gru.
#include "catena/functions/connection/n_step_gru.h"
#include "functions/connection/packed_inputs.h"

namespace catena {
namespace {

constexpr int64_t kInputs = 3, kCells = 2, kLayers = 2;

FunctionRecord gru_record(const char* variant, F::GruForm form, bool states, int64_t layers) {
  FunctionRecord r;
  r.function = "n_step_gru";
  r.variant = variant;
  for (const auto& [steps, n] : {std::pair<int64_t, int64_t>{5, 4}, {2, 2}}) {
    Shapes shapes{{steps, n, kInputs}};
    if (states) shapes.push_back({layers, n, kCells});
    for (int64_t l = 0; l < layers; ++l)
      shapes.insert(shapes.end(),
                    {Shape{3 * kCells, l == 0 ? kInputs : kCells}, Shape{3 * kCells, kCells},
                     Shape{3 * kCells}, Shape{3 * kCells}});
    r.shapes.push_back(shapes);
  }
  const size_t first = states ? 2 : 1;
  r.call = [=](const Variables& v) {
    const Variables weights(v.begin() + int64_t(first), v.end());
    const F::PackedSequences xs = packed(v[0]);
    const auto [hy, ys] = states ? F::n_step_gru(layers, 0, v[1], weights, xs, form)
                                 : F::n_step_gru(layers, 0, {}, weights, xs, form);
    return Variables{hy, ys.padded()};
  };
  return r;
}

// One layer with 3 inputs and 2 cells over 2 sequences.
F::PackedGruResult one_layer(const Draw& d, const Shape& x, const Shape& hx = {1, 2, 2},
                             const Shape& bh = {6}) {
  const Variables weights{Variable(d({6, 3})), Variable(d({6, 2})), Variable(d({6})),
                          Variable(d(bh))};
  return F::n_step_gru(1, 0, d(hx), weights, packed(d(x)));
}

FunctionRecord gru_errors() {
  FunctionRecord r = gru_record("errors", F::GruForm::kPytorch, false, 1);
  r.shapes.resize(1);
  const std::string weights =
      ", Wx[0] float64 (6, 3), Wh[0] float64 (6, 2), bx[0] float64 (6,), "
      "bh[0] float64 ";
  r.errors = {
      type_error(
          "NStepGRU",
          [](const Draw& d) {
            one_layer(d, {3, 2, 5});
          },
          "Expect: xs.shape[1] == Wx[0].shape[1]\nActual: 5 != 3\nInputs: xs float64 (3, 5)" +
              weights +
              "(6,)\nThe layer takes packed sequences of 3 numbers at each step; their rows have "
              "shape (3, 5)."),
      type_error(
          "NStepGRU",
          [](const Draw& d) {
            one_layer(d, {3, 2, 3}, {1, 2, 2}, {8});
          },
          "Expect: bh[0].shape[0] == Wh[0].shape[0]\nActual: 8 != 6\nInputs: xs float64 (3, 3)" +
              weights +
              "(8,)\nA layer of 2 cells has Wx (6, 3), Wh (6, 2), bx (6,) and bh (6,): three "
              "blocks of rows, r, z, n. The second layer's in is out."),
      type_error(
          "NStepGRU",
          [](const Draw& d) {
            one_layer(d, {3, 2, 3}, {1, 2, 4});
          },
          "Expect: hx.shape[2] == out\nActual: 4 != 2\nInputs: xs float64 (3, 3), hx float64 "
          "(1, 2, 4)\nThe state hx is expected as (n_layers, n, out) = (1, 2, 2), of the dtype of "
          "the weights; it is float64 (1, 2, 4)."),
      error<ShapeError>(
          [](const Draw& d) {
            one_layer(d, {3, 2, 3}, {1, 3, 2});
          },
          "PackedSequences: expected states of 2 sequences, (layers, 2, out), got "
          "shape (1, 3, 2)"),
      error<ValueError>(
          [](const Draw& d) {
            F::n_step_gru(2, 0, {}, {Variable(d({6, 3}))}, packed(d({3, 2, 3})));
          },
          "NStepGRU: 2 layers have 8 weights, Wx, Wh, bx and bh of each; got 1"),
      error<ValueError>(
          [](const Draw& d) {
            F::n_step_gru(0, 0, {}, {}, packed(d({3, 2, 3})));
          },
          "NStepGRU: expected n_layers of at least 1, got 0"),
      error<ValueError>(
          [](const Draw& d) {
            F::n_step_gru(1, 1, {}, {}, packed(d({3, 2, 3})));
          },
          "NStepGRU: expected a dropout ratio of [0, 1), got 1"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(n_step_gru) {
  return {gru_record("", F::GruForm::kPytorch, true, kLayers),
          gru_record("Chainer's form", F::GruForm::kChainer, true, 1), gru_errors()};
}

}  // namespace catena
