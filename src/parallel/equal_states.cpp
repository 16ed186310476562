#include "equal_states.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string_view>

#include "array_digest.h"
#include "catena/comm/internals.h"
#include "catena/comm/transport.h"
#include "rank_difference.h"

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

// "reduce, loss scale, hooks, rule". Hooks may differ: one may print on rank 0.
std::string stages_of(const Optimizer& optimizer) {
  std::string names;
  for (const auto& stage : optimizer.stages())
    names += message(names.empty() ? "" : ", ", stage->name());
  return names;
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

std::string shortest(double value) {  // that reads back as the same number
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

// "weight decay 0.01, hard clipping -1 1": what hooks did in the last update. Where states are
// whole, the parameters show a hook that is missing on one rank; where each rank updates a part of
// them, nothing else does.
std::string changes_in(const Optimizer& optimizer) {
  std::string text;
  for (const auto& change : optimizer.gradient_changes()) {
    text += message(text.empty() ? "" : ", ", change.what);
    for (const double number : change.numbers) text += " " + shortest(number);
  }
  return text.empty() ? "none" : text;
}

// Of everything that the ranks must hold alike.
uint64_t digest_of_all(Optimizer& optimizer, bool is_updated) {
  optimizer.settle_layout();
  uint64_t hash = mix(0, static_cast<uint64_t>(optimizer.t()));
  const std::string changes = is_updated ? changes_in(optimizer) : "";
  for (const char c : stages_of(optimizer) + '\n' + frozen_in(optimizer) + '\n' + changes)
    hash = mix(hash, static_cast<unsigned char>(c));
  for (const auto& [name, value] : optimizer.hyper_parameters()) {
    for (const char c : name) hash = mix(hash, static_cast<unsigned char>(c));
    hash = mix(hash, std::bit_cast<uint64_t>(value));
  }
  for (const ParameterArena& arena : optimizer.layout().arenas()) {
    if (arena.has_whole_data()) hash = mix(hash, digest_of(arena.data().memory));
    hash = mix(hash, digest_of_states(optimizer, arena));
  }
  for (const auto& stage : optimizer.stages())
    for (const auto& [name, array] : stage->state()) hash = mix(hash, digest_of(array));
  for (const auto& [path, p] : optimizer.persistents())
    if (p.over_ranks() == OverRanks::kEqual) hash = mix(hash, digest_of(p.data()));
  return hash;
}

// What differs -----------------------------------------------------------------------------------

// "kind\tname\tvalue" lines, in the order in which a difference is to be named: causes first.
std::string describe(Optimizer& optimizer, bool is_updated) {
  std::string text;
  const auto add = [&](const char* kind, const std::string& name, const auto& value) {
    text += message(kind, "\t", name, "\t", value, "\n");
  };
  add("stages", "", stages_of(optimizer));
  add("frozen", "", frozen_in(optimizer));
  if (is_updated) add("changes", "", changes_in(optimizer));
  for (const auto& [name, value] : optimizer.hyper_parameters())
    add("hyper-parameter", name, shortest(value));
  add("number of updates", "t", optimizer.t());
  const Parameters& parameters = optimizer.layout().parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].state()->data->is_absent)
      add("parameter", optimizer.layout().name(i), digest_of(parameters[i].data()));
  for (const auto& [path, p] : optimizer.persistents())
    if (p.over_ranks() == OverRanks::kEqual) add("persistent array", path, digest_of(p.data()));
  if (optimizer.is_sharded()) return text;
  for (const auto& [name, array] : optimizer.state())
    if (name.find('/') != std::string::npos) add("optimizer state", name, digest_of(array));
  return text;
}

std::string name_in(const std::vector<std::string>& line) {
  return line.size() == 3 ? message(line[0], " '", line[1], "'") : "nothing";
}

// "lr is 0.1 on ranks 0, 2 and 0.2 on rank 1" of numbers, "parameter '/W' of rank 1 differs from
// rank 0's" of arrays. Lines of other names come of rules with other hyper-parameters.
std::string describe(const std::vector<RankGroup>& groups) {
  const std::vector<std::string> first = split(groups[0].line, '\t');
  const std::string kind = first.size() == 3 ? first[0] : "";
  std::vector<int> others;
  std::string values;
  for (const RankGroup& group : groups) {
    const std::vector<std::string> parts = split(group.line, '\t');
    const bool same_name = parts.size() == 3 && first.size() == 3 && parts[1] == first[1];
    if (!same_name)
      return message("the ranks have different update rules: where rank 0 has ", name_in(first),
                     ", ", comm::list_ranks(group.ranks),
                     group.ranks.size() == 1 ? " has " : " have ", name_in(parts));
    values += message(values.empty() ? "" : ", ", parts[2], " on ", comm::list_ranks(group.ranks));
    if (&group != &groups[0]) others.insert(others.end(), group.ranks.begin(), group.ranks.end());
  }
  std::sort(others.begin(), others.end());
  if (kind == "stages") return message("the stages of an update are ", values);
  if (kind == "frozen") return message("the frozen parameters are ", values);
  if (kind == "changes") return message("what hooks did to the gradients is ", values);
  if (kind == "hyper-parameter" || kind == "number of updates")
    return message(kind, " '", first[1], "' is ", values);
  return message(first[0], " '", first[1], "' on ", comm::list_ranks(others),
                 others.size() == 1 ? " differs" : " differ", " from that on rank 0");
}

}  // namespace

void check_equal_states(Communicator& comm, Optimizer& optimizer, const char* who,
                        bool is_updated) {
  if (comm.size() == 1) return;
  const comm::PurposeScope purpose(&comm, who);
  const std::vector<uint64_t> all = comm.all_gather_object(digest_of_all(optimizer, is_updated));
  if (std::all_of(all.begin(), all.end(), [&](uint64_t d) { return d == all[0]; })) return;
  const std::vector<RankGroup> groups =
      first_difference(comm.all_gather_bytes(describe(optimizer, is_updated)));
  const bool is_persistent = !groups.empty() && groups[0].line.starts_with("persistent");
  const std::string text = message(
      who, ": the ranks do not hold the same state: ",
      groups.empty() ? "their parameters or optimizer states differ" : describe(groups),
      ". All ranks must start from the same state and make the same updates: call "
      "broadcast_state() after loading or changing it on one rank, read checkpoints with "
      "from_rank_0(), and give the same hyper-parameters and hooks on all ranks",
      is_persistent ? "; a persistent array that each rank changes by its own data is to be "
                      "declared OverRanks::kMean or kPerRank"
                    : "");
  fail_for_difference(comm, groups, text);
}

}  // namespace catena::parallel
