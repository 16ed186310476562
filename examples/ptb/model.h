// The language model: vectors of words, two layers of LSTM, scores of the next word (W. Zaremba,
// I. Sutskever and O. Vinyals, Recurrent neural network regularization, 2014).
#pragma once

#include <utility>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/connection/n_step_lstm.h"
#include "catena/functions/noise/dropout.h"

namespace ptb {

namespace F = catena::functions;
using catena::Array;
using catena::Variable;

// Sizes of the network.
struct Sizes {
  int64_t words, units;
  double dropout;
};

// Goes through `streams` texts at once, a window of words at a time, and begins each window with
// the state in which the one before it ended. Gradients end at the border of a window.
class LanguageModel : public catena::FunctionSet {
 public:
  static constexpr int64_t kLayers = 2;
  F::EmbedID embed;
  F::NStepLSTM lstm;
  F::Linear scores;
  // Of this rank's streams, (kLayers, streams, units).
  catena::OwnedPersistent h, c;
  CATENA_FUNCTIONS(embed, lstm, scores, h, c)

  LanguageModel(const Sizes& sizes, int64_t streams)
      : embed(sizes.words, sizes.units),
        lstm(kLayers, sizes.units, sizes.units, {.dropout = sizes.dropout}),
        scores(sizes.units, sizes.words),
        h(catena::zeros({kLayers, streams, sizes.units}, {catena::dtype::float32}),
          catena::OverRanks::kPerRank),
        c(catena::zeros({kLayers, streams, sizes.units}, {catena::dtype::float32}),
          catena::OverRanks::kPerRank),
        dropout_(sizes.dropout) {
    for (catena::Parameter& p : parameters())
      p.copy_from(catena::random::uniform(p.shape(), -0.1, 0.1, {catena::dtype::float32}));
  }

  // words: (streams, steps), integers. Scores of shape (steps * streams, vocabulary).
  Variable operator()(const Array& words) {
    // Copies, because backward reads the states that this window began with.
    auto [hy, cy, y] =
        run(Variable::constant(h.data().copy()), Variable::constant(c.data().copy()), words);
    h.copy_from(hy.data());
    c.copy_from(cy.data());
    return y;
  }
  // The same from given states, which are left as they are: {h, c, scores}.
  struct Result {
    Variable h, c, scores;
  };
  Result run(const Variable& hx, const Variable& cx, const Array& words) {
    const Variable x = F::dropout(embed(words.transpose()), dropout_, training());
    const F::LstmResult r = lstm(hx, cx, x);
    const Variable ys = F::dropout(r.ys, dropout_, training());
    return {r.hy, r.cy, scores(F::reshape(ys, {-1, lstm.out_size()}))};
  }

 private:
  double dropout_;
};

}  // namespace ptb
