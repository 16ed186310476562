// What the records of the losses share: reductions and their names.
#pragma once

#include "catena/functions/loss/reduction.h"
#include "functions/function_record.h"

namespace catena {

inline constexpr F::Reduction kReductions[] = {F::Reduction::kMean, F::Reduction::kSum,
                                               F::Reduction::kNone};
inline const char* name_of(F::Reduction reduction) {
  return reduction == F::Reduction::kMean  ? "mean"
         : reduction == F::Reduction::kSum ? "sum"
                                           : "each";
}

}  // namespace catena
