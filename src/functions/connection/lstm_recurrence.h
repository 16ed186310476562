// The recurrence of an LSTM written on variables, step by step: for gradients of higher order, and
// for calls without an element.
#pragma once

#include <vector>

#include "catena/autograd/variable.h"

namespace catena::functions {

// The operands of n_step_lstm; undefined states are 0. With counts x is the rows of all steps, as
// in LstmCall.
struct LstmOperands {
  Variable x, hx, cx;
  Variables weights;
  std::vector<int64_t> counts = {};
  size_t layers() const { return weights.size() / 3; }
  int64_t steps() const {
    return counts.empty() ? x.shape()[0] : static_cast<int64_t>(counts.size());
  }
  int64_t sequences() const { return counts.empty() ? x.shape()[1] : counts[0]; }
  int64_t count(size_t step) const { return counts.empty() ? sequences() : counts[step]; }
  int64_t rows() const { return counts.empty() ? steps() * sequences() : x.shape()[0]; }
  Shape result_shape() const {
    return counts.empty() ? Shape{steps(), sequences(), cells()} : Shape{rows(), cells()};
  }
  int64_t cells() const { return weights[1].shape()[1]; }
  Shape states_shape() const { return {static_cast<int64_t>(layers()), sequences(), cells()}; }
};

// What a step computes, for its gradient.
struct LstmStep {
  Variable a, i, f, o, tanh_c, h_prev, c_prev;
};
struct LstmForward {
  std::vector<Variable> inputs;              // of each layer, (rows, in)
  std::vector<std::vector<LstmStep>> steps;  // of each layer
  Variable hy, cy, ys;
};
LstmForward lstm_forward(const LstmOperands& operands);

// Gradients of x, hx, cx and the weights, given those of hy, cy and ys, which may be undefined.
struct LstmGradients {
  Variable x, hx, cx;
  Variables weights;
};
LstmGradients lstm_backward(const LstmOperands& operands, const LstmForward& forward,
                            const Variable& ghy, const Variable& gcy, const Variable& gys);

}  // namespace catena::functions
