// LSTM over whole sequences: n_step_lstm and the layer NStepLSTM.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catena/autograd/function_set.h"
#include "catena/functions/connection/packed_sequences.h"
#include "catena/functions/initializers.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// h and c of all layers after the last step, (n_layers, n, out), and h of the last layer at every
// step, (steps, n, out). const auto [hy, cy, ys] = lstm(hx, cx, xs).
struct LstmResult {
  Variable hy, cy, ys;
};
// The same of sequences of different lengths: hy and cy are those of each sequence behind its own
// last step, in the order of the sequences, and ys has the rows (rows, out).
struct PackedLstmResult {
  Variable hy, cy;
  PackedSequences ys;
};

// Layers of LSTM with forget gates (F. Gers, J. Schmidhuber and F. Cummins, 2000) over n sequences
// of the same length, in one call. Arguments and results are in the order of Chainer's n_step_lstm.
//
// For sequences of different lengths give PackedSequences. Padded ones give the right ys before
// their ends, too, because what follows does not change earlier steps, but not hy and cy.
//
// xs: (steps, n, in). hx, cx: (n_layers, n, out), the states before the first step; {} is 0.
// weights: Wx (4 * out, in), Wh (4 * out, out) and b (4 * out) of the first layer, then those of
// the second, whose in is out, and so on. Their rows are four blocks: a, i, f, o. At each step
//   a, i, f, o = x Wx^T + h Wh^T + b
//   c = tanh(a) * sigmoid(i) + c * sigmoid(f),  h = tanh(c) * sigmoid(o)
// While training, dropout_ratio of the numbers between two layers are dropped, as by dropout();
// then each layer is a call of its own, and equal seeds give equal masks on every device.
//
// One floating dtype and device, else InvalidType. ValueError for another number of weights than
// 3 * n_layers, n_layers below 1, or a ratio outside [0, 1). On a GPU cuDNN computes where it is
// faster, or with CATENA_PROVIDERS=lstm/cudnn:always where it can; else our own kernels. Gradients
// of any order; those of first order are computed by the provider that computed the forward pass,
// all in one call.
LstmResult n_step_lstm(int64_t n_layers, double dropout_ratio, const OptionalVariable& hx,
                       const OptionalVariable& cx, const Variables& weights,
                       const VariableOperand& xs, YesNo train = true);
// xs: of rows (rows, in). hx and cx have the sequences in the order in which they were given. At
// each step the products have the rows of those that go on. cuDNN computes only where all are
// equally long.
PackedLstmResult n_step_lstm(int64_t n_layers, double dropout_ratio, const OptionalVariable& hx,
                             const OptionalVariable& cx, const Variables& weights,
                             const PackedSequences& xs, YesNo train = true);

// Dropout, start values and dtype of an NStepLSTM. Start values are those of every layer: an array
// is that of all four blocks, copied, and an initializer makes each block, whose shape is given
// here.
struct NStepLSTMOptions {
  double dropout = 0;                  // between layers, in train state
  double wscale = 1;                   // W ~ normal(0, wscale * sqrt(1 / inputs)), of Wx and Wh
  InitialValue upward_init = {};       // of Wx instead: (out, in)
  InitialValue lateral_init = {};      // of Wh instead: (out, out)
  InitialValue bias_init = {};         // of b: (out); 0 unless given
  InitialValue forget_bias_init = {};  // of block f alone, (out); that of bias_init unless given
  std::optional<Dtype> dtype = {};     // float32, or that of an array upward_init
};

// n_step_lstm as a layer on the current device. ValueError for sizes below 1 and a dropout outside
// [0, 1), DtypeError for integer dtypes, ShapeError for start values of other shapes. The weights
// of each layer are neighbours in an optimizer's arena.
class NStepLSTM : public Parameterized {
 public:
  NStepLSTM(int64_t n_layers, int64_t in_size, int64_t out_size,
            const NStepLSTMOptions& options = {});

  // From the given states, {} for 0; errors are those of n_step_lstm(). Drops in train state,
  // unless the call says otherwise.
  LstmResult operator()(const OptionalVariable& hx, const OptionalVariable& cx,
                        const VariableOperand& xs, std::optional<YesNo> train = {}) const;
  PackedLstmResult operator()(const OptionalVariable& hx, const OptionalVariable& cx,
                              const PackedSequences& xs, std::optional<YesNo> train = {}) const;
  // From states of 0.
  LstmResult operator()(const VariableOperand& xs, std::optional<YesNo> train = {}) const;
  PackedLstmResult operator()(const PackedSequences& xs, std::optional<YesNo> train = {}) const;
  // "0/Wx", "0/Wh", "0/b", "1/Wx", ...
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  // Sizes of the network.
  int64_t n_layers() const { return static_cast<int64_t>(layers.size()); }
  int64_t in_size() const { return layers.front().Wx.shape()[1]; }
  int64_t out_size() const { return layers.front().Wh.shape()[1]; }

  // The parameters of a layer, as n_step_lstm() takes them.
  struct Weights {
    OwnedParameter Wx, Wh, b;
  };
  std::vector<Weights> layers;  // in order, the one that reads xs first

 private:
  Variables weights() const;
  double dropout_;
};

}  // namespace catena::functions
