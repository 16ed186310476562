// Connectionist temporal classification: the loss of label sequences whose alignment to the inputs
// is not known.
#pragma once

#include <cstdint>
#include <optional>

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Options of connectionist_temporal_classification.
struct ConnectionistTemporalClassificationOptions {
  // Integers (batch): how many steps and labels belong to each sample; all unless given. What is
  // behind them does not count, and gets no gradient.
  std::optional<Array> input_length = {};
  std::optional<Array> label_length = {};
  Reduction reduction = Reduction::kMean;  // over the batch; kNone: (batch)
};

// The mean over the batch of -log P(t | xs) (Graves et al. 2006), where P is the sum of the
// probabilities of all sequences of classes, one for each step, that become t when equal neighbours
// are joined and blanks are then left out. Between two equal labels a sequence needs a blank. xs:
// scores of each step, (batch, classes) floats, before a softmax, which is applied here; or x of
// shape (steps, batch, classes). t: int32 or int64 (batch, labels), classes other than
// blank_symbol. 0-d, of x's dtype; computed in logarithms, in float32 for 16 bits. The loss is not
// divided by the number of labels.
//
// InvalidType for other dtypes and shapes, ShapeError for steps of different shapes, DeviceError
// for operands on different devices;
// ValueError for no steps, a blank_symbol outside [0, classes), and lengths that are not integers
// of shape (batch). On a CPU a ValueError as well for a length outside [0, steps] or [0, labels], a
// label that is not a class or is the blank, and labels for which there are too few steps: as many
// as labels, and one more between equal neighbours. On a GPU, where looking would wait for the
// device, lengths and labels make the loss NaN and too few steps make it infinite; such a sample
// has no gradient, and check_ctc_labels says which it is. No gradient flows to t. One kernel
// forward, one backward, which do not wait; xs are joined first. There are no second gradients:
// backward with create_graph is a GradientError.
Variable connectionist_temporal_classification(
    const Variables& xs, const VariableOperand& t, int32_t blank_symbol,
    const ConnectionistTemporalClassificationOptions& options = {});
Variable connectionist_temporal_classification(
    const VariableOperand& x, const VariableOperand& t, int32_t blank_symbol,
    const ConnectionistTemporalClassificationOptions& options = {});
// Throws the ValueErrors of lengths, labels and blank_symbol above on any device, which it waits
// for. t: (batch, labels), else ShapeError, of int32 or int64, else DtypeError.
void check_ctc_labels(const Array& t, int64_t steps, int64_t classes, int32_t blank_symbol,
                      const ConnectionistTemporalClassificationOptions& options = {});

}  // namespace catena::functions
