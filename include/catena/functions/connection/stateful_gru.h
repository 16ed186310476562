// A gated recurrent unit that keeps its state.
#pragma once

#include <cstdint>

#include "catena/functions/connection/linear.h"

namespace catena::functions {

// Gated recurrent units (K. Cho et al., Learning Phrase Representations using RNN Encoder-Decoder,
// 2014), a step a call:
//   r = sigmoid(W_r(x) + U_r(h)),  z = sigmoid(W_z(x) + U_z(h)),
//   h = (1 - z) * h + z * tanh(W(x) + U(r * h)),
// and the result is h. It starts as 0. It is a variable, so that backward() goes through all steps
// since reset_state(); loss.unchain_backward() cuts the graph. It follows x to another device,
// copies of the layer go on from it, and files do not have it. The layers U have no bias, for W's
// would add to it. ValueError for sizes below 1, DtypeError for integer dtypes, ShapeError for
// another number of samples than that of the state. Error in a graph that would begin with the
// state of an earlier step.
class StatefulGRU : public Parameterized {
 public:
  StatefulGRU(int64_t in_size, int64_t out_size, Dtype dtype = Dtype::kFloat32);
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

 private:
  uint64_t made_in_ = 0;  // capture in which the state was made
};

}  // namespace catena::functions
