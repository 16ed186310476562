// The table of the optimizers' rules.
#include "catena/kernels/optimizer.h"

#include <limits>
#include <string>

#include "catena/core/error.h"

namespace catena {

const std::vector<OptimizerRule>& optimizer_rules() {
  static const std::vector<OptimizerRule> rules = [] {
    constexpr double INF = std::numeric_limits<double>::infinity();
    std::vector<OptimizerRule> rows;
#define RATE(name) name
#define STATES(...) \
  { __VA_ARGS__ }
#define NUMBERS(...) \
  { __VA_ARGS__ }
#define NORMS_OF(what) NORMS_OF_##what
#define NORMS_OF_GRADIENTS true, false
#define NORMS_OF_STEPS true, true
#define CATENA_RULE(functor, rate, ...) \
  rows.push_back({#functor, static_cast<int>(rows.size()), rate, __VA_ARGS__});
#include "catena/kernels/detail/optimizer_rules.def"
#undef CATENA_RULE
#undef RATE
#undef STATES
#undef NUMBERS
#undef NORMS_OF
#undef NORMS_OF_GRADIENTS
#undef NORMS_OF_STEPS
    return rows;
  }();
  return rules;
}

const OptimizerRule& optimizer_rule(std::string_view name) {
  std::string known;
  for (const OptimizerRule& rule : optimizer_rules()) {
    if (rule.name == name) return rule;
    known += (known.empty() ? "" : ", ") + std::string(rule.name);
  }
  fail<ValueError>("optimizer_rule: there is no rule '", name, "'; there are: ", known);
}

}  // namespace catena
