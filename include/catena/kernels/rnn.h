// Recurrent layers: one step of an LSTM, and whole sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// Below, all arrays of a call are of one floating dtype, contiguous and not empty. N is the number
// of sequences, H the number of cells. Gates are four blocks of H: a (the new content), i (input
// gate), f (forget gate) and o (output gate). 16-bit floats are computed in float32 and rounded
// when they are stored.

// One step of an LSTM with forget gates (F. Gers, J. Schmidhuber and F. Cummins, Learning to
// Forget, 2000):
//   a = tanh(gates_a),  i, f, o = sigmoid(gates_i, gates_f, gates_o)
//   c = a * i + c_prev * f,  h = tanh(c) * o
struct LstmCellCall {
  const Array* gates;      // (N, 4H)
  const Array* c_prev;     // (N, H); null counts as 0
  const Array* activated;  // (N, 4H), written: a, i, f, o; may be gates; null: not wanted
  const Array* c;          // (N, H), written; may be c_prev
  const Array* h;          // (N, H), written
};

// Its gradients. That of h is the sum of gh and gh_next. With `of_gates` the forward call's gates
// are given instead of what it has activated, and are activated again.
struct LstmCellGradCall {
  const Array* activated;  // (N, 4H), of the forward call
  const Array* c_prev;     // (N, H), of the forward call; null counts as 0
  const Array* c;          // (N, H), of the forward call
  const Array* gh;         // (N, H); null counts as 0
  const Array* gh_next;    // (N, H); null counts as 0
  const Array* gc;         // (N, H), of what follows c but h; null counts as 0
  const Array* g_gates;    // (N, 4H), written
  const Array* gc_prev;    // (N, H), written; may be gc; null: not wanted
  bool of_gates = false;
};

struct LstmGradCall;

// The weights of one layer; I is the extent of its input, H above the first layer.
struct LstmWeights {
  const Array* Wx;  // (4H, I)
  const Array* Wh;  // (4H, H)
  const Array* b;   // (4H)
};

// Sequences of T steps through L layers, one direction. Layer l computes at step t
//   gates = x[t] Wx^T + h[t - 1] Wh^T + b,  c[t], h[t] = cell(c[t - 1], gates)
// and starts with h[-1] = h0[l], c[-1] = c0[l]; its h is the x of the next layer.
//
// Without `counts` all sequences have T steps. With them the first counts[t] sequences have a step
// t: counts begin with N and do not rise, the sequences are ordered from the longest to the
// shortest. x, y and their gradients then are the rows of all steps one after the other, (R, I) and
// (R, H), where R is the sum of the counts. hT and cT are those of each sequence's own last step.
struct LstmCall {
  const Array* x;                    // (T, N, I)
  const Array* h0;                   // (L, N, H); null counts as 0
  const Array* c0;                   // (L, N, H); null counts as 0
  std::vector<LstmWeights> weights;  // of each layer
  const Array* y;                    // (T, N, H), written: h of the last layer
  const Array* hT;                   // (L, N, H), written: h and c of all layers at the last step
  const Array* cT;                   // (L, N, H)
  Kept<LstmGradCall>* kept = nullptr;
  std::vector<int64_t> counts = {};
};

// Where the gradient of an array goes; null: not wanted.
struct LstmTarget {
  const Array* array = nullptr;
  bool accumulate = false;
};
// Those of the weights of one layer.
struct LstmWeightTargets {
  LstmTarget Wx, Wh, b;  // as in LstmWeights
};

// Gradients of a forward call, whose arrays x, h0, c0, weights and y still have their values. A
// provider may make gradients in memory of its own that are not wanted.
struct LstmGradCall {
  const Array* x;
  const Array* h0;
  const Array* c0;
  std::vector<LstmWeights> weights;
  const Array* y;
  const Array* gy;                         // (T, N, H); null counts as 0
  const Array* ghT;                        // (L, N, H); null counts as 0
  const Array* gcT;                        // (L, N, H); null counts as 0
  const Array* gx;                         // (T, N, I), written; null: not wanted
  const Array* gh0;                        // (L, N, H), written; null: not wanted
  const Array* gc0;                        // (L, N, H), written; null: not wanted
  std::vector<LstmWeightTargets> targets;  // of each layer
  const Kept<LstmGradCall>* kept = nullptr;
  std::vector<int64_t> counts = {};
};

namespace kernels {

// The slots of the calls above.
extern Slot<LstmCellCall> lstm_cell;
extern Slot<LstmCellGradCall> lstm_cell_grad;
extern Slot<LstmCall> lstm;
extern Slot<LstmGradCall> lstm_grad;

}  // namespace kernels

}  // namespace catena
