// Negative sampling: the word of a context against a few drawn ones.
#pragma once

#include <optional>
#include <vector>

#include "catena/functions/initializers.h"
#include "catena/functions/noise/walker_alias.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// The sum over the batch, not its mean, of log(1 + exp(-x . W[t])) and, for `sample_size` rows n
// drawn from `sampler`, of log(1 + exp(x . W[n])) (Mikolov et al. 2013). x: (batch, size) floats;
// t: int32 or int64 (batch), a row of W; W: (rows, size) of x's dtype. A drawn row may be t itself.
// 0-d, of x's dtype; 16-bit numbers are summed in float32. The draws are kept for backward; no
// gradient flows to t. W's gradient is written or added straight to its place, and beyond the rows
// in use only zeros. InvalidType for other dtypes and shapes; ValueError for a sampler of another
// number of rows and a sample_size below 1; DeviceError where operands or sampler are on different
// devices. A t outside W is a ValueError on a CPU; on a GPU, where looking would wait for the
// device, it makes the loss NaN and has no gradient. Does not wait: it can be captured, and replays
// draw new rows.
Variable negative_sampling(const VariableOperand& x, const VariableOperand& t,
                           const VariableOperand& W, const WalkerAlias& sampler,
                           int64_t sample_size);
// The same of given rows, int32 or int64 (batch, terms): column 0 is t, the others are drawn. One
// kernel forward; backward one for the gradients of the terms, and one that adds up those of a row.
Variable negative_sampling(const VariableOperand& x, const VariableOperand& samples,
                           const VariableOperand& W);

// Start values and the distribution of a NegativeSampling.
struct NegativeSamplingOptions {
  double power = 0.75;              // rows are drawn in proportion to counts^power
  InitialValue initialW = {};       // (rows, in); zeros unless given
  std::optional<Dtype> dtype = {};  // float32, or that of initialW
};

// negative_sampling as a layer with a row of W, zero at first, for each of `counts`, and a sampler
// of these rows. ValueError for sizes below 1, no counts, or counts that WalkerAlias does not take;
// ShapeError for an initialW of another shape, DtypeError for integer dtypes.
class NegativeSampling : public Parameterized {
 public:
  NegativeSampling(int64_t in_size, const std::vector<double>& counts, int64_t sample_size,
                   const NegativeSamplingOptions& options = {});

  // The loss; errors are those of negative_sampling().
  Variable operator()(const VariableOperand& x, const VariableOperand& t) const;
  int64_t sample_size() const { return sample_size_; }

  OwnedParameter W;     // (rows, in)
  WalkerAlias sampler;  // of the rows
  CATENA_PARAMETERS(W, sampler)

 private:
  int64_t sample_size_;
};

}  // namespace catena::functions
