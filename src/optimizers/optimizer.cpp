// Setup, layout, counts and rates. The other members of Optimizer are in optimizer_groups.cpp,
// optimizer_gradients.cpp, optimizer_norms.cpp, optimizer_update.cpp and optimizer_state.cpp.
#include "catena/optimizers/optimizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "catena/array/creation.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"

namespace catena::optimizers {
namespace {

void check_rate(const std::string& name, double rate) {
  CATENA_CHECK(ValueError, std::isfinite(rate) && rate >= 0, "optimizer: the learning rate ", name,
               " is ", rate, ", expected a finite number of at least 0");
}

}  // namespace

Optimizer::Optimizer(std::string lr_name, double lr)
    : lr_name_(std::move(lr_name)), lr_(lr), stages_(built_in_stages()) {
  check_rate(lr_name_, lr);
}
Optimizer::~Optimizer() = default;

// Setup -------------------------------------------------------------------------------------------

void Optimizer::setup(Parameterized& model) {
  ArenaSet::Named named = model.named_parameters();
  for (auto& entry : named) entry.first.insert(0, 1, '/');
  NamedPersistents persistents = model.named_persistents();
  for (auto& entry : persistents) entry.first.insert(0, 1, '/');
  setup_named(named, model.parameters(), std::move(persistents));
  has_model_ = true;
}

namespace {

// Names of a list's parameters: their own ones, each with a slash in front, where they are unique.
ArenaSet::Named names_of(const Parameters& parameters) {
  ArenaSet::Named named;
  std::unordered_set<std::string> taken;
  for (const Parameter& p : parameters) {
    CATENA_CHECK(ValueError, p.defined(), "setup: parameter ", named.size(),
                 " of the list is undefined");
    std::string name = p.name();
    if (!name.empty() && name[0] != '/') name.insert(0, 1, '/');
    if (!taken.insert(name).second) name.clear();
    named.emplace_back(std::move(name), p);
  }
  for (size_t i = 0; i < named.size(); ++i) {
    for (size_t number = i; named[i].first.empty(); ++number)
      if (std::string free = message("/", number); taken.insert(free).second) named[i].first = free;
  }
  return named;
}

std::vector<size_t> positions_of(const Parameters& ordered, const ArenaSet& layout) {
  std::unordered_map<const ParameterState*, size_t> position;
  for (const Parameter& p : layout.parameters()) position.emplace(p.state(), position.size());
  std::vector<size_t> positions;
  for (const Parameter& p : ordered) positions.push_back(position.at(p.state()));
  return positions;
}

}  // namespace

void Optimizer::setup(const Parameters& parameters) {
  setup_named(names_of(parameters), parameters, {});
  has_model_ = false;
}

void Optimizer::setup_named(const ArenaSet::Named& named, const Parameters& ordered,
                            NamedPersistents persistents) {
  for (const auto& [name, p] : named) {
    check_dtype(p.dtype());
    check_parameter(name, p);
  }
  const Kept kept = kept_for(ordered);
  for (const auto& stage : current_stages()) stage->before_setup(*this, ordered);
  Placed placed = placed_anew(named, persistents, kept);
  positions_ = positions_of(ordered, placed.layout);
  ordered_ = ordered;
  persistents_ = std::move(persistents);
  groups_.keep(placed.layout);
  take(std::move(placed));
  use_groups();
  report_changes(kept);
  warn_about_forgotten_parameters("setup");
  for (const auto& stage : current_stages()) stage->after_setup(*this);
  for (ParameterBlocks* own : blocks_of_stages()) make_blocks(*own, layout_, kept);
}

// Nothing if the stage that spread the states is gone: then this process goes on alone.
Optimizer::Kept Optimizer::kept_for(const Parameters& parameters) {
  const Parameters& held = layout_.parameters();
  const bool any = std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& p) {
    return std::find(held.begin(), held.end(), p) != held.end();
  });
  if (!any || (is_sharded() && share().count == 1)) return {};
  return kept_of_all();
}

Optimizer::Kept Optimizer::kept_of_all() const {
  Kept kept{layout_.parameters(), whole_states(), {}, t()};
  for (const ParameterBlocks* own : blocks_of_stages())
    kept.of_stages.emplace_back(own, whole_arrays(*own));
  return kept;
}

void Optimizer::report_changes(const Kept& kept) const {
  if (kept.parameters.empty()) return;
  std::string added;
  for (size_t i = 0; i < layout_.parameters().size(); ++i)
    if (std::find(kept.parameters.begin(), kept.parameters.end(), layout_.parameters()[i]) ==
        kept.parameters.end())
      added += (added.empty() ? "" : ", ") + layout_.name(i);
  logging::info("setup: the optimizer goes on after ", kept.t,
                " updates with the states of the parameters that it held; new are: ",
                added.empty() ? "none" : added);
}

namespace {

// In the order of the layout; empty for parameters that were not held.
std::vector<Arrays> states_for(const ArenaSet& layout, const Parameters& held,
                               const std::vector<Arrays>& states) {
  std::unordered_map<const ParameterState*, size_t> position;
  for (const Parameter& p : held) position.emplace(p.state(), position.size());
  std::vector<Arrays> result;
  for (const Parameter& p : layout.parameters()) {
    const auto found = position.find(p.state());
    result.push_back(found == position.end() || states.empty() ? Arrays() : states[found->second]);
  }
  return result;
}

}  // namespace

Optimizer::Placed Optimizer::placed_anew(const ArenaSet::Named& named,
                                         const NamedPersistents& persistents,
                                         const Kept& kept) try {
  const Processes::Share part = share();
  CATENA_CHECK(ValueError, part.count == 1 || updates_arenas(),
               "setup: the states are to be spread over ", part.count,
               " processes, but this rule updates parameter by parameter; only rules that update "
               "arenas can do so. Keep them whole, .sharding = Sharding::kNone, or take such a "
               "rule");
  const auto compare = [&](const ArenaSet& layout) {
    for (const auto& stage : current_stages()) stage->before_values_move(layout, persistents);
  };
  Placed placed{ArenaSet(named, {memory_, part.count, cuts(), part, compare, state_format()}),
                StepNumbers(kept.t),
                {},
                {}};
  groups_.check(placed.layout);
  place(placed, kept);
  return placed;
} catch (...) {
  for (const auto& stage : current_stages())
    if (Processes* processes = stage->processes()) processes->setup_failed();
  throw;
}

void Optimizer::set_memory(ArenaMemoryPtr memory) {
  CATENA_CHECK(
      ValueError, !is_set_up(),
      "set_memory: the optimizer is set up already; say where the memory comes from first");
  memory_ = std::move(memory);
}

// The share of the first processes that take less than everything.
Processes::Share Optimizer::share() const {
  for (const auto& stage : stages_)
    if (const Processes* processes = stage->processes())
      if (const Processes::Share part = processes->share(); part.count > 1) return part;
  return {};
}

ArenaCuts Optimizer::cuts() const {
  for (const auto& stage : stages_)
    if (const Processes* processes = stage->processes())
      if (ArenaCuts cuts = processes->cuts(); cuts.any()) return cuts;
  return {};
}

void Optimizer::place(Placed& placed, const Kept& kept) {
  const Processes::Share part = share();
  const std::vector<double> starts = updates_arenas() ? state_starts() : std::vector<double>();
  placed.layout.make_states(starts, part.index, part.count);
  placed.states.resize(placed.layout.parameters().size());
  const std::vector<Arrays> old_states = states_for(placed.layout, kept.parameters, kept.states);
  for (const ParameterArena& arena : placed.layout.arenas()) {
    DeviceScope scope(arena.device());
    for (const ParameterArena::Slot& slot : arena.slots()) {
      const auto index = static_cast<size_t>(slot.index);
      const Arrays& old = old_states[index];
      placed.states[index] = make_states(arena, slot, old.empty() ? nullptr : &old);
    }
    placed.numbers.append(arena.device(), counts_on(arena.device()), lr_);
    placed.segments.push_back(uses_segments() ? make_segments(placed.layout, arena)
                                              : ArenaSegments());
  }
}

namespace {

// Writes the elements of a parameter that the block covers.
void assign_part(const Block& block, const ParameterArena::Slot& slot, const Array& whole) {
  const ElementRange own{slot.offset, slot.offset + slot.size};
  const ElementRange here = intersection(own, block.covers);
  if (here.size() == 0) return;
  ShardedArray{{},
               slot.parameter.shape(),
               block.memory.dtype(),
               slot.order,
               {here.begin - own.begin, here.end - own.begin},
               block.part(here),
               slot.parameter}
      .assign(whole);
}

}  // namespace

// The states of a parameter: views of the arena's blocks, or what a rule that updates parameter by
// parameter wants; the master copy comes last.
Arrays Optimizer::make_states(const ParameterArena& arena, const ParameterArena::Slot& slot,
                              const Arrays* old_states) {
  const std::vector<const Block*> blocks = arena.state_blocks();
  const size_t first = old_states == nullptr ? 0 : old_states->size() - blocks.size();
  for (size_t k = 0; old_states != nullptr && k < blocks.size(); ++k)
    assign_part(*blocks[k], slot, (*old_states)[first + k]);
  if (arena.covers().size() != arena.size()) return {};
  Arrays states;
  if (!updates_arenas() && old_states == nullptr) {
    const bool wide = arena.master().defined();
    const Array& p = slot.parameter.data();
    const Array& g = slot.parameter.grad();
    states = wide ? init_state(arena.slice(arena.master().memory, slot), g.astype(Dtype::kFloat32))
                  : init_state(p, g);
  } else {
    for (size_t k = 0; k < first; ++k) states.push_back((*old_states)[k].to(arena.device()));
  }
  for (const Block* block : blocks) states.push_back(arena.slice(block->memory, slot));
  return states;
}

// Of the values that are updated here, or of what the parameters had.
void Optimizer::make_blocks(ParameterBlocks& own, const ArenaSet& layout, const Kept& kept) {
  own.arenas.clear();
  const auto found = std::find_if(kept.of_stages.begin(), kept.of_stages.end(),
                                  [&](const auto& each) { return each.first == &own; });
  const std::vector<Arrays> old =
      states_for(layout, kept.parameters,
                 found == kept.of_stages.end() ? std::vector<Arrays>() : found->second);
  for (const ParameterArena& arena : layout.arenas()) {
    const DeviceScope scope(arena.device());
    const Dtype dtype = StateFormat().state_dtype(arena.dtype());
    const Block block{arena.covered().updated().astype(dtype), arena.covers()};
    for (const ParameterArena::Slot& slot : arena.slots())
      for (const Array& whole : old[size_t(slot.index)]) assign_part(block, slot, whole);
    own.arenas.push_back({block, arena.size(), arena.slots()});
  }
}

void Optimizer::take(Placed&& placed) {
  layout_ = std::move(placed.layout);
  numbers_ = std::move(placed.numbers);
  segments_ = std::move(placed.segments);
  states_ = std::move(placed.states);
  use_counts();
}

// On the host nobody knows of replays and of skipped updates.
bool Optimizer::counts_on(Device device) const {
  const auto skips = [](const auto& stage) { return stage->skips_updates(); };
  return device.is_cuda() || counts_everywhere_ ||
         std::any_of(stages_.begin(), stages_.end(), skips);
}

void Optimizer::bring_numbers() {
  for (size_t i = 0; i < numbers_.size(); ++i) numbers_.bring(i, layout_.arenas()[i].device(), lr_);
}

void Optimizer::settle_layout() {
  if (layout_.in_place()) return;
  for (const auto& stage : current_stages()) stage->before_layout_moves(*this);
  const Kept kept = kept_of_all();
  Placed placed{layout_, StepNumbers(kept.t), {}, {}};
  placed.layout.rebuild();
  place(placed, kept);
  take(std::move(placed));
  for (ParameterBlocks* own : blocks_of_stages()) make_blocks(*own, layout_, kept);
}

void Optimizer::prepare_for_capture() {
  require_setup("prepare_for_capture");
  settle_layout();
  if (updates_arenas()) layout_.adopt_low();
  for (const ParameterArena& arena : layout_.arenas()) arena.refresh_low();
  counts_everywhere_ = true;
  bring_numbers();
  for (const auto& stage : current_stages()) stage->prepare_for_capture(*this);
}

void Optimizer::require_setup(const char* who) const {
  CATENA_CHECK(ValueError, is_set_up(), "Optimizer::", who,
               ": the optimizer has no parameters yet; call setup(model) first");
}

int64_t Optimizer::t() const { return numbers_.t(); }

Array Optimizer::t_on_device(size_t arena) const {
  return numbers_.on_device(arena, layout_.arenas().at(arena).device());
}

bool Optimizer::is_capturing() const { return numbers_.is_capturing(); }

int64_t Optimizer::step() const {
  CATENA_CHECK(ValueError, updates_arenas() || !is_capturing(),
               "update: update_one reads step() while a graph is captured, and every replay would "
               "find the count of the capture; update outside of the graph, or override "
               "update_arena, whose call has the count on the device");
  return numbers_.on_host();
}

void Optimizer::set_lr(double lr) {
  check_rate(lr_name_, lr);
  CATENA_CHECK(
      ValueError, !is_capturing(),
      "set_lr: called while a graph is captured, so that every replay would set the rate to ", lr,
      "; set it before the capture or between replays");
  if (lr == lr_) return;
  lr_ = lr;
  numbers_.set_rate(lr);
  ++*changes_of_numbers_;
}

// Hyper-parameters --------------------------------------------------------------------------------

std::vector<std::pair<std::string, double>> Optimizer::hyper_parameters() const {
  std::vector<std::pair<std::string, double>> result{{lr_name_, lr_}};
  for (auto& number : groups_.numbers()) result.push_back(std::move(number));
  return result;
}

void Optimizer::set_hyper_parameter(const std::string& name, double value) {
  if (name == lr_name_) return set_lr(value);
  if (const auto group = groups_.with_number(name, value))
    return set_group(group->first, group->second);
  std::string known;
  for (const auto& [key, old] : hyper_parameters()) known += (known.empty() ? "" : ", ") + key;
  fail<ValueError>("set_hyper_parameter: this rule has no '", name, "'; it has: ", known);
}

}  // namespace catena::optimizers
