// One step of an LSTM: lstm and the layer LSTM.
#pragma once

#include <cstdint>
#include <optional>

#include "catena/functions/connection/linear.h"

namespace catena::functions {

// The cells and the output of a step: const auto [c, h] = lstm(c_prev, x).
struct LstmCellResult {
  Variable c, h;
};

// One step of LSTM units with forget gates (F. Gers, J. Schmidhuber and F. Cummins, Learning to
// Forget, 2000). c_prev: (n, cells, ...), the cells before the step. x: (n, 4 * cells, ...), four
// blocks along axis 1, a, i, f and o, the new content and the input, forget and output gates:
//   c = tanh(a) * sigmoid(i) + c_prev * sigmoid(f),  h = tanh(c) * sigmoid(o)
// Chainer 1.x interleaved the blocks; docs/guide/from-chainer.md shows how its weights are
// converted. One floating dtype and device, else InvalidType and DeviceError. Backward needs a
// gradient of one of the results only. One kernel each way.
LstmCellResult lstm(const VariableOperand& c_prev, const VariableOperand& x);

// Start values and dtype of an LSTM. Of weights and biases an array is that of all four blocks,
// and an initializer makes each block, whose shape is given here. Arrays are copied.
struct LSTMOptions {
  double wscale = 1;                   // W ~ normal(0, wscale * sqrt(1 / inputs)), of both layers
  InitialValue upward_init = {};       // of upward.W instead: (out, in)
  InitialValue lateral_init = {};      // of lateral.W instead: (out, out)
  InitialValue bias_init = {};         // of upward.b: (out); 0 unless given
  InitialValue forget_bias_init = {};  // of block f alone, (out); that of bias_init unless given
  std::optional<Dtype> dtype = {};     // float32, or that of an array upward_init
};

// An LSTM that keeps its cells and its last output: each call is a step,
//   c, h = lstm(c, upward(x) + lateral(h)),
// and the result is h. States start as 0. They are variables, so that backward() goes through all
// steps since reset_state(); loss.unchain_backward() cuts the graph. They follow x to another
// device, copies of the layer go on from them, and files do not have them. ValueError for sizes
// below 1, DtypeError for integer dtypes, ShapeError for start values of other shapes and for
// another number of samples than that of the states.
class LSTM : public Parameterized {
 public:
  LSTM(int64_t in_size, int64_t out_size, const LSTMOptions& options = {});
  // The next step of n sequences. x: (n, ...), flattened to (n, in_size); the result (n, out_size).
  Variable operator()(const VariableOperand& x);
  // Forgets the states: the next step is the first one.
  void reset_state();
  // States for the next step, (n, out_size) each; undefined ones are 0.
  void set_state(const Variable& cells, const Variable& output);
  int64_t in_size() const { return upward.in_size(); }
  int64_t out_size() const { return lateral.in_size(); }

  Linear upward;   // in_size to 4 * out_size
  Linear lateral;  // out_size to 4 * out_size, no bias
  Variable c, h;   // undefined before the first step
  CATENA_FUNCTIONS(upward, lateral)
  void visit_states(const StateVisitor& visitor) override { visitor(c), visitor(h); }

 private:
  uint64_t made_in_ = 0;  // capture in which the states were made
};

}  // namespace catena::functions
