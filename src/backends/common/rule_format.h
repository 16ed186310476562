// How a step of an optimizer stores states and master copies.
#pragma once

#include "catena/array/array.h"
#include "catena/core/dtype_info.h"
#include "catena/kernels/optimizer.h"

namespace catena {

inline RuleFormat rule_format(const OptimizerCall& call) {
  const bool is_narrow = call.states[0] != nullptr && call.states[0]->dtype() == Dtype::kBFloat16;
  const bool is_alone = call.master == nullptr && is_narrow_float(call.parameter->dtype());
  if (is_alone) return is_narrow ? RuleFormat::kNarrowAlone : RuleFormat::kWideAlone;
  return is_narrow ? RuleFormat::kNarrow : RuleFormat::kWide;
}

// For a rule or a dtype that has no kernel of the format.
[[noreturn]] inline void fail_rule_format(const OptimizerCall& call) {
  fail<DtypeError>("optimizer_update: ", call.rule->name, " has no kernel for parameters of ",
                   call.parameter->dtype(), call.master == nullptr ? " without" : " with",
                   " master copies and states of ",
                   call.states[0] == nullptr ? call.parameter->dtype() : call.states[0]->dtype());
}

}  // namespace catena
