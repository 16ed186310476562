// Update rules with states of 16 bits, and of 16-bit parameters without master copies.
#include "backends/cuda/optimizer/rule_kernel.cuh"

namespace catena::gpu {
namespace {

template <class Rule, class T>
bool launch_stored(RuleFormat format, const OptimizerArgs& args, const Launch& launch) {
  constexpr bool kIsNarrow = sizeof(T) == 2;
  if constexpr (!std::is_same_v<T, double>) {
    if (format == RuleFormat::kNarrow) {
      launch_rule<Stored<T, __nv_bfloat16, kIsNarrow>, Rule>(args, launch);
      return true;
    }
  }
  if constexpr (kIsNarrow) {
    if (format == RuleFormat::kNarrowAlone)
      launch_rule<Stored<T, __nv_bfloat16, false>, Rule>(args, launch);
    else
      launch_rule<Stored<T, float, false>, Rule>(args, launch);
    return true;
  }
  return false;
}

template <class Rule>
bool launch_dtype(RuleFormat format, Float type, const OptimizerArgs& args, const Launch& launch) {
  if constexpr (Rule::kAnyFormat)
    CATENA_FLOAT_SWITCH(type, { return launch_stored<Rule, T>(format, args, launch); })
  return false;
}

}  // namespace

bool launch_format(int rule, RuleFormat format, Float type, const OptimizerArgs& args,
                   const Launch& launch) {
  int id = 0;
#define CATENA_RULE(functor, ...) \
  if (rule == id++) return launch_dtype<rules::functor>(format, type, args, launch);
#include "catena/kernels/detail/optimizer_rules.def"
#undef CATENA_RULE
  return false;
}

}  // namespace catena::gpu
