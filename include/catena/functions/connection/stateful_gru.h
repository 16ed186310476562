// A gated recurrent unit that keeps its state.
#pragma once

#include <cstdint>
#include <optional>

#include "catena/functions/connection/linear.h"

namespace catena::functions {

// Start values and dtype of a StatefulGRU. Arrays are copied for each of the three layers.
struct StatefulGRUOptions {
  InitialValue init = {};           // (out, in): the weights of W_r, W_z and W
  InitialValue inner_init = {};     // (out, out): those of U_r, U_z and U
  InitialValue bias_init = {};      // (out): the biases of W_r, W_z and W; 0 unless given
  std::optional<Dtype> dtype = {};  // float32, or that of an array init
};

// Gated recurrent units (K. Cho et al., Learning Phrase Representations using RNN Encoder-Decoder,
// 2014), a step a call:
//   r = sigmoid(W_r(x) + U_r(h)),  z = sigmoid(W_z(x) + U_z(h)),
//   h = (1 - z) * h + z * tanh(W(x) + U(r * h)),
// and the result is h. It starts as 0. It is a variable, so that backward() goes through all steps
// since reset_state(); loss.unchain_backward() cuts the graph. It follows x to another device,
// copies of the layer go on from it, and files do not have it. The layers U have no bias, for W's
// would add to it. The layers start as Linear does unless values are given. ValueError for sizes
// below 1, DtypeError for integer dtypes, ShapeError for start values of other shapes and for
// another number of samples than that of the state. Error in a graph that would begin with the
// state of an earlier step.
class StatefulGRU : public Parameterized {
 public:
  StatefulGRU(int64_t in_size, int64_t out_size, const StatefulGRUOptions& options = {});
  // The next step of n sequences. x: (n, ...), flattened to (n, in_size); the result (n, out_size).
  Variable operator()(const VariableOperand& x);
  // Forgets the state: the next step is the first one.
  void reset_state();
  // A state for the next step, (n, out_size); an undefined one is 0.
  void set_state(const Variable& state);
  int64_t in_size() const { return W.in_size(); }
  int64_t out_size() const { return W.out_size(); }

  Linear W_r, U_r;  // of the reset gate
  Linear W_z, U_z;  // of the update gate
  Linear W, U;      // of the new content
  Variable h;       // undefined before the first step
  CATENA_FUNCTIONS(W_r, U_r, W_z, U_z, W, U)
  void visit_states(const StateVisitor& visitor) override { visitor(h); }

 private:
  uint64_t made_in_ = 0;  // capture in which the state was made
};

}  // namespace catena::functions
