// Cross entropy of the scores of a linear layer, which are never in memory as a whole.
#pragma once

#include <optional>

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Options of linear_cross_entropy. The first three are those of softmax_cross_entropy.
struct LinearCrossEntropyOptions {
  int32_t ignore_label = -1;
  // kMean divides by the number of labels that are not ignored, and declares it (mean.h). kNone:
  // one loss for each label, of t's shape, 0 for ignored ones.
  Reduction reduction = Reduction::kMean;
  // s of [0, 1): labels count 1 - s, and all classes s / classes.
  double label_smoothing = 0;
  // Adds z_loss lse^2 to the loss of each label that is not ignored, where lse is the logarithm of
  // the sum of the exponentials of its scores, which keeps it near 0 (Chowdhery et al. 2022: 1e-4).
  double z_loss = 0;
  // Tokens whose scores are in memory at a time. By default as many as have 176 MiB of scores, but
  // at least 1024: fewer make products that are too thin for a GPU, and read and write the gradient
  // of W more often.
  std::optional<int64_t> chunk = {};
};

// softmax_cross_entropy(linear(h, W, b), t) for many classes, such as the words of a language
// model. h: (..., size), floats; W: (classes, size) and b: (classes) of its dtype, as linear takes
// them; t: int32 or int64 (...), the label of each token. The result is of float32 or wider, as the
// losses are: 16-bit operands give float32. Without valid labels: 0 with zero gradient.
//
// Scores are computed in the operands' dtype, each product added up in float32 or wider, for a
// chunk of tokens at a time. A kernel turns them into losses and into their gradient, from which
// the products of the chunk make the gradient of h, and add to the gradients of W and b in float32
// or wider. So the gradients that are wanted are made by the forward pass, before those of 16 bits
// are multiplied by that of the loss: neither needs a loss scale. Backward multiplies them and may
// run again. What is not wanted is not computed: frozen weights, and everything but losses where
// nothing is recorded. Equal calls give equal bits.
//
// - Memory beyond the results: the scores of a chunk, and the gradient of W in float32. Until
//   backward the gradients are kept.
// - kNone keeps no gradients. Each token's gradient enters before they are added up, so backward
//   computes the scores again: four products instead of three.
// - With create_graph the gradient is composed of functions that hold all scores in memory.
// - An AutocastScope casts h, W and b as for linear.
//
// A label outside [0, classes) is a ValueError on a CPU; on a GPU, where looking would wait for the
// device, its loss is NaN, and check_labels says where it is. InvalidType for dtypes and shapes
// that do not fit, ValueError for options that make no sense, DeviceError for several devices.
Variable linear_cross_entropy(const VariableOperand& h, const VariableOperand& W,
                              const VariableOperand& t,
                              const LinearCrossEntropyOptions& options = {});
Variable linear_cross_entropy(const VariableOperand& h, const VariableOperand& W,
                              const VariableOperand& b, const VariableOperand& t,
                              const LinearCrossEntropyOptions& options = {});

}  // namespace catena::functions
