// r2_score, of sums of squares.
#include "catena/functions/evaluation/r2_score.h"

#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "functions/common/loss_parts.h"

namespace catena::functions {

Variable r2_score(const VariableOperand& pred, const VariableOperand& truth_operand,
                  YesNo raw_values) {
  FunctionCall call("R2Score", Autocast::kNone, pred, truth_operand);
  check_pair(call, "pred", "truth");
  const TypeOf in(call[0].data(), "pred");
  Checks(call.named(), in)
      .advised([] { return "Expected are samples, (n) or (n, outputs)."; })
      .require(in.ndim() >= 1);
  CATENA_CHECK(ValueError, call[0].shape()[0] > 0, call.label(),
               ": expected at least one sample, got shape ", call[0].shape());
  const Dtype wide = compute_dtype(call[0].dtype());
  const Array guess = call[0].data().astype(wide, false);
  const Array truth = call[1].data().astype(wide, false);
  const Array residual = catena::sum(catena::square(guess - truth), 0);
  const Array spread = catena::sum(catena::square(truth - catena::mean(truth, 0)), 0);
  // Rounding of the mean leaves something of a constant.
  const Array known = not_equal(amax(truth, 0), amin(truth, 0));
  const Array scores =
      catena::where(known, 1.0 - residual / catena::where(known, spread, 1.0), 0.0);
  return call.unrecorded(raw_values ? scores : catena::mean(scores));
}

}  // namespace catena::functions
