// Cross entropy of class scores.
#pragma once

#include <optional>

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Mean of -log softmax(x)[label] over the labels that are not ignored (normalize), or their sum
// divided by the batch size x.shape[0]. x: (n, classes, d1, ...) floats; t: int32 or int64
// (n, d1, ...). Without valid labels: 0 with zero gradient. 0-d, of x's dtype; of 16-bit scores in
// an AutocastScope of float32, without a copy of them. A label outside [0, classes) is a ValueError
// on a CPU; on a GPU, where looking would wait for the device, it makes the loss NaN, and
// check_labels says where it is. One kernel forward, one backward.
//
// t may also be distributions over the classes: floats of x's dtype and shape, whose loss is
// -sum(t log softmax(x)) over the classes, and which get a gradient. No label is ignored then. A
// class of probability 0 may have a score of minus infinity: their product counts 0, as do those of
// weights below.
Variable softmax_cross_entropy(const VariableOperand& x, const VariableOperand& t,
                               YesNo normalize = true, int32_t ignore_label = -1);

// Options of softmax_cross_entropy, which cost nothing where they are not used.
struct SoftmaxCrossEntropyOptions {
  // Whether a mean divides by the number of labels that are not ignored, or by their class weights,
  // and not by the batch size.
  bool normalize = true;
  int32_t ignore_label = -1;
  // kNone: one loss for each label, of t's shape (of distributions: without the axis of classes), 0
  // for ignored ones.
  Reduction reduction = Reduction::kMean;
  // (classes), floats on x's device, a constant: the loss of a label is multiplied by the weight of
  // its class. A normalized mean is the weighted mean.
  std::optional<Array> class_weight = {};
  // s of [0, 1): labels count 1 - s, and all classes s / classes (Szegedy et al. 2016).
  double label_smoothing = 0;
  // Whether the forward pass writes the gradient over the scores, for which backward hands their
  // memory on: scores of many classes are then read once and written once, and no array of their
  // size is allocated. Only where the call is recorded and x wants a gradient; else nothing is
  // written.
  //
  // - After the call the scores hold the gradient. Read them before (accuracy, a second loss):
  //   later reads get the gradient, without an error. A function that has saved the scores for its
  //   own backward raises the usual GradientError of an overwritten array. So does this one if the
  //   gradient is overwritten.
  // - x must be computed by a function. A ValueError for a parameter, for a variable that was
  //   given, and for a view of one that is still alive. Views of computed scores (reshape) are
  //   fine: the memory of the scores behind them is overwritten. Scores that are not contiguous
  //   are copied; the copy is overwritten.
  // - Backward runs once, without create_graph, else a GradientError. Labels only: a ValueError for
  //   distributions.
  bool gradient_in_place = false;
  // With gradient_in_place: the gradient of the loss (of each loss) with which backward is expected
  // to begin, 0-d floats, not 0; 1 if absent. Any other is right, too, and costs a pass that
  // multiplies, unless it is found equal, on the device. Give a loss scale
  // (optimizer.scaled(ones({}, dtype::float32)).data()) or the factor of accumulated gradients.
  // float16 needs it: the gradient of one sample of many is rounded as it is written.
  std::optional<Array> gradient_of_loss = {};
};
// The same with options: softmax_cross_entropy(x, t, {.label_smoothing = 0.1}). With
// label_smoothing and class_weight w the loss of label t is
// (1 - s) w[t] (-log p[t]) + s / classes sum(w[c] (-log p[c])). Backward is one kernel, too. A
// ValueError for a smoothing or weights that do not fit.
Variable softmax_cross_entropy(const VariableOperand& x, const VariableOperand& t,
                               const SoftmaxCrossEntropyOptions& options);

// Throws the ValueError above on any device, for which it waits; DtypeError for other dtypes of t.
void check_labels(const Array& t, int64_t classes, int32_t ignore_label = -1);

}  // namespace catena::functions
