// Defaults of what rules override, hooks by name, and states by name.
#include <algorithm>
#include <unordered_set>

#include "catena/array/creation.h"
#include "catena/optimizers/optimizer.h"

namespace catena::optimizers {

Arrays Optimizer::init_state(const Array& parameter, const Array& gradient) {
  return parameter.device().is_cpu() ? init_state_cpu(parameter, gradient)
                                     : init_state_gpu(parameter, gradient);
}

Arrays Optimizer::init_state_cpu(const Array& parameter, const Array&) {
  Arrays states;
  for (size_t k = 0; k < state_names().size(); ++k) states.push_back(zeros_like(parameter));
  return states;
}

Arrays Optimizer::init_state_gpu(const Array& parameter, const Array& gradient) {
  return Optimizer::init_state_cpu(parameter, gradient);
}

void Optimizer::update_one(const Array& parameter, const Array& gradient, const Arrays& states) {
  if (parameter.device().is_cpu())
    update_one_cpu(parameter, gradient, states);
  else
    update_one_gpu(parameter, gradient, states);
}

void Optimizer::update_one_cpu(const Array&, const Array&, const Arrays&) {
  fail<ValueError>(
      "Optimizer: the rule has neither update_one nor update_one_cpu; override one of them");
}

void Optimizer::update_one_gpu(const Array&, const Array&, const Arrays&) {
  fail<ValueError>(
      "Optimizer: the rule has neither update_one nor update_one_gpu; override one of them");
}

void Optimizer::update_arena(const ArenaUpdate&) {
  fail<ValueError>("Optimizer: the rule says updates_arenas() but does not override update_arena");
}

std::vector<double> Optimizer::state_starts() const {
  return std::vector<double>(state_names().size(), 0.0);
}

void Optimizer::check_dtype(Dtype dtype) const {
  CATENA_CHECK(DtypeError,
               !updates_arenas() || dtype == Dtype::kFloat32 || dtype == Dtype::kFloat64,
               "setup: this rule updates float32 and float64 parameters, got ", dtype,
               "; keep the parameters in float32, or override check_dtype in a rule that updates "
               "the float32 master copies of 16-bit parameters");
}

// Hyper-parameters --------------------------------------------------------------------------------

std::vector<std::pair<std::string, double>> Optimizer::hyper_parameters() const {
  return {{lr_name_, lr_}};
}

void Optimizer::set_hyper_parameter(const std::string& name, double value) {
  if (name == lr_name_) return set_lr(value);
  std::string known;
  for (const auto& [key, old] : hyper_parameters()) known += (known.empty() ? "" : ", ") + key;
  fail<ValueError>("set_hyper_parameter: this rule has no '", name, "'; it has: ", known);
}

// Hooks -------------------------------------------------------------------------------------------

void Optimizer::add_hook(const std::string& name, Hook hook) {
  CATENA_CHECK(ValueError, bool(hook), "add_hook: hook '", name, "' is empty");
  const auto found =
      std::find_if(hooks_.begin(), hooks_.end(), [&](const auto& h) { return h.first == name; });
  auto shared = std::make_shared<const Hook>(std::move(hook));
  if (found != hooks_.end())
    found->second = std::move(shared);
  else
    hooks_.emplace_back(name, std::move(shared));
}

void Optimizer::remove_hook(const std::string& name) {
  const auto found =
      std::find_if(hooks_.begin(), hooks_.end(), [&](const auto& h) { return h.first == name; });
  CATENA_CHECK(IndexError, found != hooks_.end(), "remove_hook: there is no hook '", name, "'");
  hooks_.erase(found);
}

// States ------------------------------------------------------------------------------------------

namespace {

bool has_loss_scale(const std::map<std::string, Array>& state) {
  return state.contains("loss_scale/value");
}

}  // namespace

// Of the master copy of a parameter, whether it has one or not.
std::string Optimizer::master_name(size_t index) const { return "master" + layout_.name(index); }

// A rule of a user may call a state of its own "master".
bool Optimizer::has_masters(const std::map<std::string, Array>& state) const {
  const std::vector<std::string> own = state_names();
  if (std::find(own.begin(), own.end(), "master") != own.end()) return false;
  for (size_t i = 0; i < states_.size(); ++i)
    if (state.contains(master_name(i))) return true;
  return false;
}

// What does not fit, a line each, in a state that is to be loaded into `own`.
std::string Optimizer::problems_of(const NamedArrays& own,
                                   const std::map<std::string, Array>& given) const {
  std::string problems;
  std::map<std::string, Array> unknown = given;
  for (const auto& [name, array] : own) {
    const auto found = given.find(name);
    unknown.erase(name);
    if (found == given.end()) {
      problems += message("\n  missing: ", name, " ", array.shape());
    } else if (found->second.shape() != array.shape() || found->second.dtype() != array.dtype()) {
      problems += message("\n  ", name, ": expected ", array.shape(), " ", array.dtype(), ", got ",
                          found->second.shape(), " ", found->second.dtype());
    }
  }
  for (const auto& [name, array] : unknown)
    problems += message("\n  unknown: ", name, " ", array.shape());
  if (has_masters(unknown))
    problems += "\nMaster copies belong to 16-bit parameters; those of this model are not";
  if (has_loss_scale(unknown))
    problems += "\nThe state was saved with a loss scale: call add_loss_scale before it is loaded";
  else if (!has_loss_scale(given) && has_loss_scale({own.begin(), own.end()}))
    problems +=
        "\nThe state was saved without a loss scale: call add_loss_scale after it is loaded";
  return problems;
}

const Arrays& Optimizer::state_of(const Parameter& parameter) {
  require_setup("state_of");
  settle_layout();
  const auto& all = layout_.parameters();
  const auto found = std::find(all.begin(), all.end(), parameter);
  CATENA_CHECK(ValueError, found != all.end(),
               "state_of: the optimizer does not hold this parameter");
  return states_[size_t(found - all.begin())];
}

NamedArrays Optimizer::state() {
  require_setup("state");
  settle_layout();
  NamedArrays result;
  result.emplace_back("t", scalar_array(t(), {Dtype::kInt64, cpu()}));
  for (const auto& [name, value] : hyper_parameters()) {
    result.emplace_back(name, scalar_array(value, {Dtype::kFloat64, cpu()}));
  }
  const std::vector<std::string> names = state_names();
  for (size_t i = 0; i < states_.size(); ++i) {
    for (size_t k = 0; k < states_[i].size(); ++k) {
      const std::string name = k < names.size()   ? names[k] + layout_.name(i)
                               : updates_arenas() ? master_name(i)
                                                  : message("state", k, layout_.name(i));
      result.emplace_back(name, states_[i][k]);
    }
  }
  for (const auto& stage : stages_) {
    for (auto& entry : stage->state()) result.push_back(std::move(entry));
  }
  return result;
}

void Optimizer::load_state(const std::map<std::string, Array>& given) {
  require_setup("load_state");
  NamedArrays own = state();
  const bool without_masters = !has_masters(given);
  if (without_masters) {
    std::unordered_set<std::string> masters;
    for (const ParameterArena& arena : layout_.arenas()) {
      if (!arena.master().defined()) continue;
      for (const auto& slot : arena.slots()) masters.insert(master_name(size_t(slot.index)));
    }
    std::erase_if(own, [&](const auto& e) { return masters.contains(e.first); });
  }
  const std::string problems = problems_of(own, given);
  CATENA_CHECK(IoError, problems.empty(),
               "load_state: the file is not the state of this optimizer:", problems);
  for (const auto& [name, value] : hyper_parameters())
    set_hyper_parameter(name, given.at(name).item<double>());
  for (const auto& [name, array] : own) array.assign(given.at(name));  // t and numbers are copies
  if (without_masters) {
    for (const ParameterArena& arena : layout_.arenas())
      if (arena.master().defined()) arena.master().assign(arena.data());
  }
  t_ = given.at("t").item<int64_t>();
  for (const DeviceValues& values : values_)
    if (values.block.defined()) values.step.fill(static_cast<double>(t_));
  for (const auto& stage : current_stages()) stage->state_was_loaded();
}

}  // namespace catena::optimizers
