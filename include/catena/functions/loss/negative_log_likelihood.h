// Loss of logarithms of probabilities.
#pragma once

#include <optional>

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Options of negative_log_likelihood, as those of softmax_cross_entropy.
struct NegativeLogLikelihoodOptions {
  int32_t ignore_label = -1;
  Reduction reduction = Reduction::kMean;
  // (classes), floats on the device of log_p, a constant.
  std::optional<Array> class_weight = {};
};
// -w[t] log_p[t] of each label that is not ignored: their mean, which divides by the sum of their
// weights w (by their number without class_weight), their sum, or one number for each label, 0 for
// ignored ones. log_p: (n, classes, d1, ...) floats, logarithms of probabilities, such as
// log_softmax gives; t: int32 or int64 (n, d1, ...). Of the dtype of log_p, added up in float32 or
// wider. A label outside [0, classes) is a ValueError on a CPU; on a GPU its loss is NaN.
Variable negative_log_likelihood(const VariableOperand& log_p, const VariableOperand& t,
                                 const NegativeLogLikelihoodOptions& options = {});

}  // namespace catena::functions
