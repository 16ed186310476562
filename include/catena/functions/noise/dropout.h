// dropout, as a function and as a layer.
#pragma once

#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// While training: sets elements to 0 with probability `ratio`, scales the others by 1 / (1 - ratio)
// (Srivastava et al. 2014). Otherwise, and with ratio 0, x itself. The mask is drawn from the
// default generator of x's device and drawn again in backward, so nothing is saved. ratio of [0,
// 1), else ValueError; 0.5 without one.
Variable dropout(const VariableOperand& x, std::optional<double> ratio = {}, YesNo train = true);

// dropout as a layer without parameters: drops in train state, unless the call says otherwise. Like
// any layer it is listed in CATENA_FUNCTIONS, where train() and eval() of the model find it.
// ValueError for a ratio outside [0, 1).
class Dropout : public Parameterized {
 public:
  explicit Dropout(double ratio = 0.5);
  Variable operator()(const VariableOperand& x, std::optional<YesNo> train = {}) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  double ratio() const { return ratio_; }

 private:
  double ratio_;
};

}  // namespace catena::functions
