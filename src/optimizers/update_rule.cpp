// What a rule does where it overrides nothing.
#include "catena/optimizers/update_rule.h"

#include "catena/array/creation.h"

namespace catena::optimizers {

Arrays UpdateRule::init_state(const Array& parameter, const Array& gradient) {
  return parameter.device().is_cpu() ? init_state_cpu(parameter, gradient)
                                     : init_state_gpu(parameter, gradient);
}

Arrays UpdateRule::init_state_cpu(const Array& parameter, const Array&) {
  Arrays states;
  for (size_t k = 0; k < state_names().size(); ++k) states.push_back(zeros_like(parameter));
  return states;
}

Arrays UpdateRule::init_state_gpu(const Array& parameter, const Array& gradient) {
  return UpdateRule::init_state_cpu(parameter, gradient);
}

void UpdateRule::update_one(const Array& parameter, const Array& gradient, const Arrays& states) {
  if (parameter.device().is_cpu())
    update_one_cpu(parameter, gradient, states);
  else
    update_one_gpu(parameter, gradient, states);
}

void UpdateRule::update_one_cpu(const Array&, const Array&, const Arrays&) {
  fail<ValueError>(
      "Optimizer: the rule has neither update_one nor update_one_cpu; override one of them");
}

void UpdateRule::update_one_gpu(const Array&, const Array&, const Arrays&) {
  fail<ValueError>(
      "Optimizer: the rule has neither update_one nor update_one_gpu; override one of them");
}

void UpdateRule::update_arena(OptimizerCall&) {
  fail<ValueError>("Optimizer: the rule says updates_arenas() but does not override update_arena");
}

void UpdateRule::sum_step_squares(OptimizerCall&, const Array&, const Array&) {
  fail<ValueError>(
      "Optimizer: the rule says needs_norms_of_steps() but does not override sum_step_squares");
}

std::vector<double> UpdateRule::state_starts() const {
  return std::vector<double>(state_names().size(), 0.0);
}

void UpdateRule::check_dtype(Dtype dtype) const {
  CATENA_CHECK(DtypeError,
               !updates_arenas() || dtype == Dtype::kFloat32 || dtype == Dtype::kFloat64,
               "setup: this rule updates float32 and float64 parameters, got ", dtype,
               "; keep the parameters in float32, or override check_dtype in a rule that updates "
               "the float32 master copies of 16-bit parameters");
}

void UpdateRule::check_parameter(const std::string&, const Parameter&) const {}

}  // namespace catena::optimizers
