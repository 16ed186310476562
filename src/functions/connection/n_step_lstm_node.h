// The record of an n_step_lstm call in the graph.
#pragma once

#include "catena/autograd/function_call.h"
#include "catena/kernels/rnn.h"
#include "functions/connection/lstm_recurrence.h"

namespace catena::functions {

inline constexpr const char* kNStepLstm = "NStepLSTM";

// The kernels' view of operands: contiguous arrays, and what refers to them.
struct LstmArrays {
  explicit LstmArrays(const LstmOperands& operands);
  std::vector<LstmWeights> list() const;
  const Array* h0() const { return hx.defined() ? &hx : nullptr; }
  const Array* c0() const { return cx.defined() ? &cx : nullptr; }
  Array x, hx, cx;
  std::vector<Array> weights;
};

// Runs the call by the slot and records it: hy, cy, ys. The operands of the call are x, hx and cx
// if there are any, and the weights. Nothing is empty.
Variables run_n_step_lstm(FunctionCall& call, const LstmOperands& operands);

}  // namespace catena::functions
