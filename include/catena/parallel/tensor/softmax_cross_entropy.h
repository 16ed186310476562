// Cross entropy of class scores that are spread over ranks.
#pragma once

#include "catena/comm/communicator.h"
#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Options of vocab_parallel_softmax_cross_entropy, as of softmax_cross_entropy.
struct VocabParallelOptions {
  // Whether a mean divides by the number of labels that are not ignored, and not by the batch size.
  bool normalize = true;
  int32_t ignore_label = -1;
  // kNone: one loss for each label, of t's shape, 0 for ignored ones.
  Reduction reduction = Reduction::kMean;
  // s of [0, 1): labels count 1 - s, and all classes, those of other ranks too, s / classes.
  double label_smoothing = 0;
};

// softmax_cross_entropy where each rank has the scores of classes / size neighbouring classes: rank
// r has those of [r * classes / size, (r + 1) * classes / size), as a ColumnParallelLinear gives
// them. x: (n, classes / size, d1, ...) floats; t, whole: int32 or int64 (n, d1, ...). The loss is
// whole: all ranks have the same bits.
//
// Ranks exchange three numbers a label, never the scores: the largest score, and the sum of
// exponentials and the score of the label (with label_smoothing the mean of the scores that it
// asks for) in one message; backward exchanges nothing. 16-bit scores
// are converted to float32, which is then the dtype of the loss; else that is x's. Differentiable
// any number of times. All ranks make the call.
//
// Without valid labels: 0 with zero gradient. A label outside [0, classes) is a ValueError on a
// CPU; on a GPU, where looking would wait for the device, it makes the loss NaN. DtypeError and
// ShapeError for operands that do not fit, DeviceError for those on other devices, ValueError for a
// label_smoothing outside [0, 1).
Variable vocab_parallel_softmax_cross_entropy(const VariableOperand& x, const VariableOperand& t,
                                              Communicator& comm,
                                              const VocabParallelOptions& options = {});

}  // namespace catena::functions
