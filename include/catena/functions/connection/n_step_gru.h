// Gated recurrent units over whole sequences.
#pragma once

#include <cstdint>

#include "catena/functions/connection/packed_sequences.h"

namespace catena::functions {

// The two forms of the unit. For each block k of rows let x_k = x Wx_k^T + bx_k and
// h_k = h Wh_k^T + bh_k. Then r = sigmoid(x_r + h_r), z = sigmoid(x_z + h_z), and
//   kPytorch   n = tanh(x_n + r * h_n),                  h = (1 - z) * n + z * h
//   kChainer   n = tanh(x_n + (r * h) Wh_n^T + bh_n),    h = (1 - z) * h + z * n
// The first is also that of cuDNN and of NStepGRU in later versions of Chainer. The second is that
// of StatefulGRU, from K. Cho et al., Learning Phrase Representations using RNN Encoder-Decoder,
// 2014.
enum class GruForm : uint8_t { kPytorch, kChainer };

// h of all layers behind each sequence's last step, (n_layers, n, out), in the order of the
// sequences, and h of the last layer at every step: rows (rows, out).
struct PackedGruResult {
  Variable hy;
  PackedSequences ys;
};

// Layers of GRU over n sequences of any lengths; for sequences of one length, x (steps, n, in),
// give PackedSequences(x).
//
// xs: of rows (rows, in). hx: (n_layers, n, out), the states before the first step in the order of
// the sequences; {} is 0. weights: Wx (3 * out, in), Wh (3 * out, out), bx (3 * out) and bh
// (3 * out) of the first layer, then those of the second, whose in is out, and so on. Their rows
// are three blocks: r, z, n. While training, dropout_ratio of the numbers between two layers are
// dropped, as by dropout().
//
// One floating dtype and device, else InvalidType and DeviceError. ValueError for another number of
// weights than 4 * n_layers, n_layers below 1, or a ratio outside [0, 1). Composed of other
// functions: one product for the inputs of all steps of a layer, then products with the rows of the
// sequences that go on. Gradients of any order.
PackedGruResult n_step_gru(int64_t n_layers, double dropout_ratio, const OptionalVariable& hx,
                           const Variables& weights, const PackedSequences& xs,
                           GruForm form = GruForm::kPytorch, YesNo train = true);

}  // namespace catena::functions
