#include "catena/optimizers/rule_optimizer.h"

#include <algorithm>

namespace catena::optimizers {
namespace {

void check_number(const OptimizerRule& rule, const OptimizerRule::Number& number, double value) {
  const bool above = number.brackets[0] == '[' ? value >= number.least : value > number.least;
  const bool below = number.brackets[1] == ']' ? value <= number.most : value < number.most;
  CATENA_CHECK(ValueError, above && below, rule.name, ": expected ", number.name, " in ",
               std::string(1, number.brackets[0]), number.least, ", ", number.most,
               std::string(1, number.brackets[1]), ", got ", value);
}

}  // namespace

RuleOptimizer::RuleOptimizer(std::string_view rule, double rate,
                             std::initializer_list<double> numbers, const StateFormat& format)
    : Optimizer(optimizer_rule(rule).rate_name, rate),
      rule_(&optimizer_rule(rule)),
      format_(format) {
  CATENA_CHECK(DtypeError, !format.dtype || *format.dtype == Dtype::kBFloat16, rule,
               ": expected state_dtype bfloat16, got ", *format.dtype,
               "; without it states are float32, those of float64 parameters float64");
  CATENA_CHECK(ValueError, numbers.size() == rule_->numbers.size(), rule, ": expected ",
               rule_->numbers.size(), " numbers, got ", numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) set_number(i, numbers.begin()[i]);
}

void RuleOptimizer::set_number(size_t index, double value) {
  check_number(*rule_, rule_->numbers[index], value);
  numbers_[index] = value;
}

std::vector<std::pair<std::string, double>> RuleOptimizer::hyper_parameters() const {
  std::vector<std::pair<std::string, double>> result = Optimizer::hyper_parameters();
  for (size_t i = 0; i < rule_->numbers.size(); ++i)
    result.emplace_back(rule_->numbers[i].name, numbers_[i]);
  return result;
}

void RuleOptimizer::set_hyper_parameter(const std::string& name, double value) {
  for (size_t i = 0; i < rule_->numbers.size(); ++i)
    if (rule_->numbers[i].name == name) return set_number(i, value);
  Optimizer::set_hyper_parameter(name, value);
}

std::vector<std::string> RuleOptimizer::state_names() const {
  std::vector<std::string> names;
  for (const OptimizerRule::State& state : rule_->states) names.emplace_back(state.name);
  return names;
}

std::vector<double> RuleOptimizer::state_starts() const {
  std::vector<double> starts;
  for (const OptimizerRule::State& state : rule_->states) starts.push_back(state.start);
  return starts;
}

void RuleOptimizer::complete(OptimizerCall& call) const {
  call.rule = rule_;
  std::copy(numbers_.begin(), numbers_.end(), call.numbers);
}

void RuleOptimizer::sum_step_squares(OptimizerCall& call, const Array& partial, const Array& sums) {
  complete(call);
  kernels::step_squares(call.parameter->device(), {&call, &partial, &sums});
}

void RuleOptimizer::update_arena(OptimizerCall& call) {
  complete(call);
  kernels::optimizer_update(call.parameter->device(), call);
}

bool RuleOptimizer::needs_norms() const { return rule_->needs_norms; }
bool RuleOptimizer::needs_norms_of_steps() const { return rule_->norms_of_steps; }

void RuleOptimizer::check_dtype(Dtype dtype) const {
  CATENA_CHECK(DtypeError, is_float(dtype), "setup: ", rule_->name,
               " updates floating parameters, got ", dtype);
  CATENA_CHECK(DtypeError, !format_.dtype || dtype != Dtype::kFloat64, "setup: ", rule_->name,
               " keeps states of ", *format_.dtype,
               " for parameters of 16 bits and float32, got float64; make the rule without "
               "state_dtype, or take float32 parameters");
}

}  // namespace catena::optimizers
