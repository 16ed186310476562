// States by name: what files have of an optimizer, whichever part of it this process keeps.
#include <algorithm>
#include <unordered_set>

#include "catena/array/creation.h"
#include "catena/optimizers/optimizer.h"
#include "optimizers/state_problems.h"

namespace catena::optimizers {

// What master copies are called. A rule of a user may call a state of its own "master".
std::string Optimizer::master_state() const {
  const std::vector<std::string> own = state_names();
  const bool is_taken = std::find(own.begin(), own.end(), "master") != own.end();
  return is_taken ? "float32" : "master";
}

// Of state k of `count` of a parameter.
std::string Optimizer::state_name(size_t k, size_t count, size_t parameter) const {
  const bool has_master = state_format().has_master(layout_.parameters()[parameter].dtype());
  if (k + 1 == count && has_master) return master_state();
  const std::vector<std::string> names = state_names();
  return k < names.size() ? names[k] : message("state", k);
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
    if (Processes* processes = stage->processes())
      if (Array all = processes->gather(block.memory); all.defined()) return all;
  fail<ValueError>(
      "Optimizer: the states are spread over processes, but the stage that spread them is gone");
}

// Of all parameters, in the order of state_of().
std::vector<Arrays> Optimizer::whole_states() const {
  if (!is_sharded()) return states_;
  std::vector<Arrays> result(layout_.parameters().size());
  for (const ParameterArena& arena : layout_.arenas()) {
    for (const Block* block : arena.state_blocks()) {
      const Array all = whole_block(*block, arena.size());
      for (const auto& slot : arena.slots())
        result[size_t(slot.index)].push_back(arena.slice(all, slot));
    }
  }
  return result;
}

std::vector<ParameterBlocks*> Optimizer::blocks_of_stages() const {
  std::vector<ParameterBlocks*> result;
  for (const auto& stage : stages_)
    if (ParameterBlocks* own = stage->parameter_states()) result.push_back(own);
  return result;
}

// Of all parameters; none where they are to be made yet.
std::vector<Arrays> Optimizer::whole_arrays(const ParameterBlocks& own) const {
  if (own.arenas.empty()) return {};
  std::vector<Arrays> result(layout_.parameters().size());
  for (const auto& [block, size, slots] : own.arenas) {
    const Block all{whole_block(block, size), {0, size}};
    for (const auto& slot : slots)
      result[size_t(slot.index)].push_back(ParameterArena::slice(all, slot));
  }
  return result;
}

namespace {

// The part of a parameter's state that the block covers.
ShardedArray part_of(const std::string& state, const std::string& path, const Block& block,
                     const ParameterArena::Slot& slot) {
  const ElementRange own{slot.offset, slot.offset + slot.size};
  const ElementRange here = intersection(own, block.covers);
  const bool any = here.size() > 0;
  return {state + path,
          slot.parameter.shape(),
          block.memory.dtype(),
          slot.order,
          any ? ElementRange{here.begin - own.begin, here.end - own.begin} : ElementRange(),
          block.part(any ? here : ElementRange{block.covers.begin, block.covers.begin}),
          slot.parameter,
          state};
}

// Those of all parameters of an arena.
void add_parts(const ArenaSet& layout, const ParameterBlocks& own, ShardedArrays& parts) {
  for (const auto& [block, size, slots] : own.arenas)
    for (const ParameterArena::Slot& slot : slots) {
      const std::string& path = layout.name(size_t(slot.index));
      parts.push_back(block.covers.size() == size
                          ? ShardedArray::whole_of(
                                own.name, path, ParameterArena::slice(block, slot), slot.parameter)
                          : part_of(own.name, path, block, slot));
    }
}

}  // namespace

ShardedArrays Optimizer::local_state() {
  require_setup("local_state");
  ShardedArrays result;
  for (size_t i = 0; !is_sharded() && i < states_.size(); ++i)
    for (size_t k = 0; k < states_[i].size(); ++k)
      result.push_back(ShardedArray::whole_of(state_name(k, states_[i].size(), i), layout_.name(i),
                                              states_[i][k], layout_.parameters()[i]));
  for (size_t a = 0; is_sharded() && a < layout_.arenas().size(); ++a) {
    const std::vector<const Block*> blocks = layout_.arenas()[a].state_blocks();
    for (const ParameterArena::Slot& slot : layout_.arenas()[a].slots()) {
      const auto index = size_t(slot.index);
      for (size_t k = 0; k < blocks.size(); ++k)
        result.push_back(
            part_of(state_name(k, blocks.size(), index), layout_.name(index), *blocks[k], slot));
    }
  }
  for (const ParameterBlocks* own : blocks_of_stages()) add_parts(layout_, *own, result);
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
  for (size_t i = 0; i < states.size(); ++i)
    for (size_t k = 0; k < states[i].size(); ++k)
      result.emplace_back(state_name(k, states[i].size(), i) + layout_.name(i), states[i][k]);
  for (auto& entry : stage_states()) result.push_back(std::move(entry));
  for (const ParameterBlocks* own : blocks_of_stages()) {
    const std::vector<Arrays> all = whole_arrays(*own);
    for (const ParameterBlocks::OfArena& of : own->arenas)
      for (const ParameterArena::Slot& slot : of.slots)
        result.emplace_back(own->name + layout_.name(size_t(slot.index)),
                            all[size_t(slot.index)].front());
  }
  return result;
}

namespace {

// Whether one is the other, rounded to 16 bits or widened, so that a state is taken from either.
bool are_alike(Dtype a, Dtype b) {
  const auto fits = [](Dtype d) { return d == Dtype::kFloat32 || d == Dtype::kBFloat16; };
  return a == b || (fits(a) && fits(b));
}

// Of what is given; alike dtypes count as those of the arrays that take them.
StateForms forms_of(const std::map<std::string, Array>& given, const ShardedArrays& own) {
  StateForms forms;
  for (const auto& [name, array] : given) forms[name] = {array.dtype(), array.shape()};
  for (const ShardedArray& array : own) {
    const auto found = forms.find(array.name);
    if (found == forms.end() || !array.parameter.defined()) continue;
    if (are_alike(found->second.dtype, array.dtype)) found->second.dtype = array.dtype;
  }
  return forms;
}

}  // namespace

// Into `own`, the arrays of stages and the numbers; `problem` begins the error.
void Optimizer::load(ShardedArrays own, const std::map<std::string, Array>& given,
                     const char* problem) {
  for (const auto& [name, array] : stage_states())
    own.push_back(ShardedArray::whole_of("", name, array, {}));
  StateForms expected;
  for (const ShardedArray& array : own) expected[array.name] = {array.dtype, array.shape};
  for (const auto& [name, array] : numbers()) expected[name] = {array.dtype(), array.shape()};
  const std::string problems = state_problems(expected, forms_of(given, own));
  CATENA_CHECK(IoError, problems.empty(), problem, problems);
  for (const auto& [name, value] : hyper_parameters())
    set_hyper_parameter(name, given.at(name).item<double>());
  numbers_.set(given.at("t").item<int64_t>());
  for (const ShardedArray& array : own) array.assign(given.at(array.name));
}

// A state may lack master copies, or have some that this optimizer does not keep.
void Optimizer::load_state(const std::map<std::string, Array>& saved) {
  require_setup("load_state");
  std::unordered_set<std::string> masters;
  for (size_t i = 0; i < layout_.parameters().size(); ++i)
    if (StateFormat().has_master(layout_.parameters()[i].dtype()))
      masters.insert(master_state() + layout_.name(i));
  const auto is_master = [&](const auto& entry) { return masters.contains(entry.first); };
  std::map<std::string, Array> given = saved;
  if (!state_format().masters) std::erase_if(given, is_master);
  const bool without_masters = std::none_of(given.begin(), given.end(), is_master);
  ShardedArrays own = local_state();
  if (without_masters)
    std::erase_if(own, [&](const ShardedArray& array) { return masters.contains(array.name); });
  load(std::move(own), given, "load_state: the file is not the state of this optimizer:");
  if (without_masters)
    for (const ParameterArena& arena : layout_.arenas()) arena.copy_data_to_master();
  for (const auto& stage : current_stages()) stage->state_was_loaded();
}

void Optimizer::load_common_state(const std::map<std::string, Array>& given) {
  require_setup("load_common_state");
  load({}, given, "load_common_state: these are not the numbers of this optimizer:");
  for (const auto& stage : current_stages()) stage->state_was_loaded();
}

}  // namespace catena::optimizers
