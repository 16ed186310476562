// Random regularisation.
#pragma once

#include <optional>

#include "catena/functions/math.h"

namespace catena::functions {

// While training: sets elements to 0 with probability `ratio`, scales the others by 1 / (1 - ratio)
// (Srivastava et al. 2014). Otherwise x itself. The mask is drawn from the default generator of x's
// device and drawn again in backward, so nothing is saved. ratio of [0, 1), else ValueError; 0.5
// without one.
Variable dropout(const VariableOperand& x, std::optional<double> ratio = {}, YesNo train = true);

}  // namespace catena::functions
