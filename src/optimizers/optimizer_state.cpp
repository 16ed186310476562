// States by name: what files have of an optimizer, whichever part of it this process keeps.
#include <algorithm>
#include <unordered_set>

#include "catena/array/creation.h"
#include "catena/optimizers/optimizer.h"
#include "optimizers/state_problems.h"

namespace catena::optimizers {
namespace {

// A state of no parameter.
ShardedArray whole(const std::string& name, const Array& array) {
  return ShardedArray::whole_of(name, array, {});
}

}  // namespace

// Of the master copy of a parameter, whether it has one or not. A rule of a user may call a state
// of its own "master".
std::string Optimizer::master_name(size_t index) const {
  const std::vector<std::string> own = state_names();
  const bool is_taken = std::find(own.begin(), own.end(), "master") != own.end();
  return (is_taken ? "float32" : "master") + layout_.name(index);
}

std::string Optimizer::state_name(size_t index, size_t k, bool is_master) const {
  const std::vector<std::string> names = state_names();
  if (is_master) return master_name(index);
  return k < names.size() ? names[k] + layout_.name(index)
                          : message("state", k, layout_.name(index));
}

bool Optimizer::has_masters(const std::map<std::string, Array>& state) const {
  for (size_t i = 0; i < layout_.parameters().size(); ++i)
    if (has_master(layout_.parameters()[i].dtype()) && state.contains(master_name(i))) return true;
  return false;
}

// Parts -------------------------------------------------------------------------------------------

bool Optimizer::is_sharded() const {
  const auto& arenas = layout_.arenas();
  return std::any_of(arenas.begin(), arenas.end(), [](const ParameterArena& arena) {
    return arena.covers().size() != arena.size();
  });
}

// All elements of a block, from all processes that keep parts of it.
Array Optimizer::whole_block(const Block& block, int64_t size) const {
  if (block.covers.size() == size) return block.memory;
  for (const auto& stage : current_stages())
    if (Array all = stage->gather_parts(block.memory); all.defined()) return all;
  fail<ValueError>(
      "Optimizer: the states are spread over processes, but the stage that spread them is gone");
}

// Of all parameters, in the order of state_of().
std::vector<Arrays> Optimizer::whole_states() const {
  if (!is_sharded()) return states_;
  std::vector<Arrays> result(layout_.parameters().size());
  for (const ParameterArena& arena : layout_.arenas()) {
    const auto add = [&](const Block& block) {
      if (!block.defined()) return;
      const Array all = whole_block(block, arena.size());
      for (const auto& slot : arena.slots())
        result[size_t(slot.index)].push_back(arena.slice(all, slot));
    };
    for (const Block& state : arena.states()) add(state);
    add(arena.master());
  }
  return result;
}

namespace {

// The part of a parameter's state that the block covers.
ShardedArray part_of(const std::string& name, const Block& block,
                     const ParameterArena::Slot& slot) {
  const ElementRange own{slot.offset, slot.offset + slot.size};
  const ElementRange here = intersection(own, block.covers);
  const bool any = here.size() > 0;
  return {name,
          slot.parameter.shape(),
          block.memory.dtype(),
          slot.order,
          any ? ElementRange{here.begin - own.begin, here.end - own.begin} : ElementRange(),
          block.part(any ? here : ElementRange{block.covers.begin, block.covers.begin}),
          slot.parameter};
}

}  // namespace

ShardedArrays Optimizer::local_state() {
  require_setup("local_state");
  ShardedArrays result;
  if (!is_sharded()) {
    for (size_t i = 0; i < states_.size(); ++i) {
      const bool wide = has_master(layout_.parameters()[i].dtype());
      for (size_t k = 0; k < states_[i].size(); ++k) {
        result.push_back(
            ShardedArray::whole_of(state_name(i, k, wide && k + 1 == states_[i].size()),
                                   states_[i][k], layout_.parameters()[i]));
      }
    }
    return result;
  }
  for (const ParameterArena& arena : layout_.arenas()) {
    for (const ParameterArena::Slot& slot : arena.slots()) {
      for (size_t k = 0; k < arena.states().size(); ++k)
        result.push_back(
            part_of(state_name(size_t(slot.index), k, false), arena.states()[k], slot));
      if (arena.master().defined())
        result.push_back(part_of(master_name(size_t(slot.index)), arena.master(), slot));
    }
  }
  return result;
}

const Arrays& Optimizer::state_of(const Parameter& parameter) {
  require_setup("state_of");
  const auto& all = layout_.parameters();
  const auto found = std::find(all.begin(), all.end(), parameter);
  CATENA_CHECK(ValueError, found != all.end(),
               "state_of: the optimizer does not hold this parameter");
  CATENA_CHECK(ValueError, !is_sharded(),
               "state_of: the states are spread over processes; local_state() has the parts that "
               "are here, state(), called by all processes, has everything");
  return states_[size_t(found - all.begin())];
}

// Saving and loading ------------------------------------------------------------------------------

// The count and the hyper-parameters: copies.
NamedArrays Optimizer::numbers() const {
  NamedArrays result;
  result.emplace_back("t", scalar_array(t(), {Dtype::kInt64, cpu()}));
  for (const auto& [name, value] : hyper_parameters())
    result.emplace_back(name, scalar_array(value, {Dtype::kFloat64, cpu()}));
  return result;
}

NamedArrays Optimizer::stage_states() const {
  NamedArrays result;
  for (const auto& stage : stages_)
    for (auto& entry : stage->state()) result.push_back(std::move(entry));
  return result;
}

NamedArrays Optimizer::common_state() {
  require_setup("common_state");
  NamedArrays result = numbers();
  for (auto& entry : stage_states()) result.push_back(std::move(entry));
  return result;
}

NamedArrays Optimizer::state() {
  require_setup("state");
  NamedArrays result = numbers();
  const std::vector<Arrays> states = whole_states();
  for (size_t i = 0; i < states.size(); ++i) {
    const bool wide = has_master(layout_.parameters()[i].dtype());
    for (size_t k = 0; k < states[i].size(); ++k)
      result.emplace_back(state_name(i, k, wide && k + 1 == states[i].size()), states[i][k]);
  }
  for (auto& entry : stage_states()) result.push_back(std::move(entry));
  return result;
}

// What does not fit, a line each, in a state that is to be loaded into `own` and the numbers.
std::string Optimizer::problems_of(const ShardedArrays& own,
                                   const std::map<std::string, Array>& given) const {
  StateForms expected, forms;
  for (const ShardedArray& array : own) expected[array.name] = {array.dtype, array.shape};
  for (const auto& [name, array] : numbers()) expected[name] = {array.dtype(), array.shape()};
  for (const auto& [name, array] : given) forms[name] = {array.dtype(), array.shape()};
  return state_problems(expected, forms);
}

void Optimizer::load_state(const std::map<std::string, Array>& given) {
  require_setup("load_state");
  ShardedArrays own = local_state();
  const bool without_masters = !has_masters(given);
  if (without_masters) {
    std::unordered_set<std::string> masters;
    for (size_t i = 0; i < layout_.parameters().size(); ++i)
      if (has_master(layout_.parameters()[i].dtype())) masters.insert(master_name(i));
    std::erase_if(own, [&](const ShardedArray& array) { return masters.contains(array.name); });
  }
  for (const auto& [name, array] : stage_states()) own.push_back(whole(name, array));
  const std::string problems = problems_of(own, given);
  CATENA_CHECK(IoError, problems.empty(),
               "load_state: the file is not the state of this optimizer:", problems);
  take_numbers(given);
  for (const ShardedArray& array : own) array.assign(given.at(array.name));
  if (without_masters)
    for (const ParameterArena& arena : layout_.arenas()) arena.copy_data_to_master();
  for (const auto& stage : current_stages()) stage->state_was_loaded();
}

void Optimizer::load_common_state(const std::map<std::string, Array>& given) {
  require_setup("load_common_state");
  ShardedArrays own;
  for (const auto& [name, array] : stage_states()) own.push_back(whole(name, array));
  const std::string problems = problems_of(own, given);
  CATENA_CHECK(IoError, problems.empty(),
               "load_common_state: these are not the numbers of this optimizer:", problems);
  take_numbers(given);
  for (const ShardedArray& array : own) array.assign(given.at(array.name));
  for (const auto& stage : current_stages()) stage->state_was_loaded();
}

// The count and the hyper-parameters.
void Optimizer::take_numbers(const std::map<std::string, Array>& given) {
  for (const auto& [name, value] : hyper_parameters())
    set_hyper_parameter(name, given.at(name).item<double>());
  t_ = given.at("t").item<int64_t>();
  for (const DeviceValues& values : values_)
    if (values.block.defined()) values.step.fill(static_cast<double>(t_));
}

}  // namespace catena::optimizers
