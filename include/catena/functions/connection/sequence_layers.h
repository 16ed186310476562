// Recurrent layers over whole sequences, in both directions, with PyTorch's parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catena/autograd/function_set.h"
#include "catena/functions/connection/n_step_gru.h"
#include "catena/functions/connection/n_step_lstm.h"

namespace catena::functions {

// Layers, directions and start values of a SequenceLSTM. The weights have different shapes: an
// array is a ValueError, and an initializer makes each block, (out, in) or (out).
struct SequenceLSTMOptions {
  int64_t layers = 1;
  bool bidirectional = false;  // a second set of weights goes through each sequence backwards
  double dropout = 0;          // of what goes from a layer into the next, in train state
  bool batch_first = false;    // padded sequences are (n, steps, ...)
  bool nobias = false;
  InitialValue initialW = {};  // of all weights; normal(0, sqrt(1 / inputs)) unless given
  InitialValue initial_bias = {};
  Dtype dtype = Dtype::kFloat32;
};
// The same of a SequenceGRU, and the form of its units.
struct SequenceGRUOptions {
  GruForm form = GruForm::kPytorch;
  int64_t layers = 1;
  bool bidirectional = false;
  double dropout = 0;
  bool batch_first = false;
  bool nobias = false;
  InitialValue initialW = {};
  InitialValue initial_bias = {};
  Dtype dtype = Dtype::kFloat32;
};

// The parameters of recurrent layers as PyTorch has them: names, shapes, and orders of blocks of
// rows, so that NameMap::from_pytorch() loads and to_pytorch() saves them as they are. Layer k has
//   weight_ih_lk (gates * out, in), weight_hh_lk (gates * out, out),
//   bias_ih_lk and bias_hh_lk (gates * out)
// and with bidirectional as many whose names end with _reverse; the in of layer 1 and those behind
// it then is 2 * out.
class SequenceWeights : public Parameterized {
 public:
  // One layer in one direction.
  struct Part {
    OwnedParameter weight_ih, weight_hh, bias_ih, bias_hh;  // no biases with nobias
  };
  // "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l0_reverse", ...
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;

  // What the layer was made with.
  int64_t layers() const { return static_cast<int64_t>(parts.size()) / directions(); }
  int64_t directions() const { return both_ ? 2 : 1; }
  int64_t in_size() const { return parts.front().weight_ih.shape()[1]; }
  int64_t out_size() const { return parts.front().weight_hh.shape()[1]; }
  double dropout() const { return dropout_; }

  // Layer by layer; in each the way forward before the way backwards.
  std::vector<Part> parts;

 protected:
  // Sizes of the layer, for the constructor.
  struct Description {
    const char* kind;
    int64_t gates, in_size, out_size, layers;
    bool both;
    double dropout;
    bool batch_first, nobias;
    InitialValue initialW, initial_bias;
    Dtype dtype;
  };
  explicit SequenceWeights(const Description& description);
  // The whole sequences of x, (steps, n, in) or (n, steps, in). ShapeError for x of other axes.
  PackedSequences packed(const char* kind, const VariableOperand& x,
                         const std::optional<Array>& lengths) const;
  // ShapeError unless states are (layers * directions, n, out).
  void check_states(const char* kind, const char* name, const OptionalVariable& states,
                    const PackedSequences& xs) const;

 private:
  bool both_;
  double dropout_;
  bool batch_first_;
};

// Layers of LSTM over sequences of any lengths, nn.LSTM: the blocks of rows are i, f, g, o, and the
// units are those of n_step_lstm(), where g is called a. With bidirectional each step has out
// numbers of the way forward and then out of the way backwards, which begins at each sequence's own
// end. hx and cx: (layers * directions, n, out), 0 without them; hy and cy have the same shape, and
// are those of each sequence behind its own last step, or first step backwards.
//
// ValueError for sizes below 1 and a dropout outside [0, 1), DtypeError for integer dtypes, and the
// errors of PackedSequences and n_step_lstm(). Drops in train state, unless the call says
// otherwise.
class SequenceLSTM : public SequenceWeights {
 public:
  SequenceLSTM(int64_t in_size, int64_t out_size, const SequenceLSTMOptions& options = {});
  PackedLstmResult operator()(const PackedSequences& xs, const OptionalVariable& hx = {},
                              const OptionalVariable& cx = {},
                              std::optional<YesNo> train = {}) const;
  // Of padded sequences, (steps, n, in) or with batch_first (n, steps, in), whose lengths are those
  // of PackedSequences(x, lengths, batch_first); ys is 0 behind the ends.
  LstmResult operator()(const VariableOperand& x, const std::optional<Array>& lengths = {},
                        const OptionalVariable& hx = {}, const OptionalVariable& cx = {},
                        std::optional<YesNo> train = {}) const;

 private:
  Variables weights(size_t part) const;
};

// h of all layers behind each sequence's last step and h of the last layer at every step, padded.
struct GruResult {
  Variable hy, ys;
};

// Layers of GRU in the same manner, nn.GRU: the blocks of rows are r, z, n, and the units are those
// of n_step_gru().
class SequenceGRU : public SequenceWeights {
 public:
  SequenceGRU(int64_t in_size, int64_t out_size, const SequenceGRUOptions& options = {});
  PackedGruResult operator()(const PackedSequences& xs, const OptionalVariable& hx = {},
                             std::optional<YesNo> train = {}) const;
  GruResult operator()(const VariableOperand& x, const std::optional<Array>& lengths = {},
                       const OptionalVariable& hx = {}, std::optional<YesNo> train = {}) const;
  GruForm form() const { return form_; }

 private:
  Variables weights(size_t part) const;
  GruForm form_;
};

}  // namespace catena::functions
