#include "equal_states.h"

#include "array_digest.h"
#include "catena/comm/internals.h"
#include "setup_agreement.h"

namespace catena::parallel {
namespace {

using optimizers::ParameterArena;

// State k of all slots as one array of the arena's length, if it is stored so; else undefined.
Array state_block(Optimizer& optimizer, const ParameterArena& arena, size_t k) {
  Array block;
  for (const ParameterArena::Slot& slot : arena.slots()) {
    const Array& state = optimizer.state_of(slot.parameter)[k];
    if (state.size() != slot.size || !state.is_dense()) return {};
    const int64_t offset = static_cast<char*>(state.raw_data()) -
                           static_cast<const char*>(state.storage()->data) -
                           slot.offset * state.itemsize();
    const int64_t end = offset + arena.size() * state.itemsize();
    if (offset < 0 || end > static_cast<int64_t>(state.storage()->bytes)) return {};
    const Array whole = Array::from_storage(state.storage(), offset, {arena.size()},
                                            {state.itemsize()}, state.dtype());
    if (!block.defined()) block = whole;
    if (block.raw_data() != whole.raw_data() || block.dtype() != whole.dtype()) return {};
  }
  return block;
}

uint64_t digest_of_states(Optimizer& optimizer, const ParameterArena& arena) {
  uint64_t hash = 0;
  if (optimizer.is_sharded()) return hash;  // every rank has its own part
  const size_t count = optimizer.state_of(arena.slots()[0].parameter).size();
  for (size_t k = 0; k < count; ++k) {
    if (const Array block = state_block(optimizer, arena, k); block.defined()) {
      hash = mix(hash, digest_of(block));
      continue;
    }
    for (const ParameterArena::Slot& slot : arena.slots()) {
      const Arrays& states = optimizer.state_of(slot.parameter);
      if (k < states.size()) hash = mix(hash, digest_of(states[k]));
    }
  }
  return hash;
}

// "/l1/W, /l1/b" in the order of declaration, without those that their group freezes.
std::string frozen_in(const Optimizer& optimizer) {
  std::string names;
  const Parameters& parameters = optimizer.layout().parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    if (optimizer.is_frozen_alone(parameters[i]))
      names += message(names.empty() ? "" : ", ", optimizer.layout().name(i));
  return names.empty() ? "none" : names;
}

// "weight decay 0.01, hard clipping -1 1": what hooks did in the last update. Where states are
// whole, the parameters show a hook that is missing on one rank; where each rank updates a part of
// them, nothing else does.
std::string changes_in(const Optimizer& optimizer) {
  std::string text;
  for (const auto& change : optimizer.gradient_changes()) {
    text += message(text.empty() ? "" : ", ", change.what);
    for (const double number : change.numbers) text += " " + comm::shortest_text(number);
  }
  return text.empty() ? "none" : text;
}

// What can be shown, causes first.
comm::Agreement agreement_of(const Optimizer& optimizer, bool is_updated) {
  comm::Agreement agreement;
  agreement.add("the stages of an update are", stages_of(optimizer));
  agreement.add("the frozen parameters are", frozen_in(optimizer));
  if (is_updated) agreement.add("what hooks did to the gradients", changes_in(optimizer));
  add_numbers(agreement, optimizer);
  agreement.add("number of updates 't'", optimizer.t());
  return agreement;
}

// Of everything that the ranks must hold alike.
uint64_t digest_of_all(Optimizer& optimizer, const comm::Agreement& shown) {
  uint64_t hash = mix(0, shown.hash());
  for (const ParameterArena& arena : optimizer.layout().arenas()) {
    if (arena.has_whole_data()) hash = mix(hash, digest_of(arena.data().memory));
    hash = mix(hash, digest_of_states(optimizer, arena));
  }
  for (const auto& stage : optimizer.stages()) {
    for (const auto& [name, array] : stage->state()) hash = mix(hash, digest_of(array));
    const optimizers::ParameterBlocks* own = stage->parameter_states();
    for (size_t a = 0; own != nullptr && !optimizer.is_sharded() && a < own->arenas.size(); ++a)
      hash = mix(hash, digest_of(own->arenas[a].block.memory));
  }
  for (const auto& [path, p] : optimizer.persistents())
    if (p.over_ranks() == OverRanks::kEqual) hash = mix(hash, digest_of(p.data()));
  return hash;
}

// What differs -----------------------------------------------------------------------------------

void add_digests(comm::Agreement& agreement, Optimizer& optimizer) {
  const auto add = [&](const char* kind, const std::string& name, const Array& array) {
    agreement.add_digest(message(kind, " '", name, "'"), digest_of(array));
  };
  const Parameters& parameters = optimizer.layout().parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].state()->data->is_absent)
      add("parameter", optimizer.layout().name(i), parameters[i].data());
  for (const auto& [path, p] : optimizer.persistents())
    if (p.over_ranks() == OverRanks::kEqual) add("persistent array", path, p.data());
  if (optimizer.is_sharded()) return;
  for (const auto& [name, array] : optimizer.state())
    if (name.find('/') != std::string::npos) add("optimizer state", name, array);
}

std::string describe(const comm::Difference& difference) {
  const char* rules =
      difference.name().empty() ? "the ranks have different update rules: where " : "";
  return rules + difference.text();
}

}  // namespace

void check_equal_states(Communicator& comm, Optimizer& optimizer, const char* who,
                        bool is_updated) {
  if (comm.size() == 1) return;
  const comm::PurposeScope purpose(&comm, who);
  optimizer.settle_layout();
  comm::Agreement agreement = agreement_of(optimizer, is_updated);
  if (comm::Agreement::is_equal(comm, digest_of_all(optimizer, agreement))) return;
  add_digests(agreement, optimizer);
  const auto difference = agreement.exchange(comm);
  const bool is_persistent = difference && difference->name().starts_with("persistent");
  const std::string text = message(
      who, ": the ranks do not hold the same state: ",
      difference ? describe(*difference) : "their parameters or optimizer states differ",
      ". All ranks must start from the same state and make the same updates: call "
      "broadcast_state() after loading or changing it on one rank, read checkpoints with "
      "from_rank_0(), and give the same hyper-parameters and hooks on all ranks",
      is_persistent ? "; a persistent array that each rank changes by its own data is to be "
                      "declared OverRanks::kMean or kPerRank"
                    : "");
  difference.value_or(comm::Difference({}, {})).fail(comm, text);
}

}  // namespace catena::parallel
