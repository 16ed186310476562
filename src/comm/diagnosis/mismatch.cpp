// Calls that differ between ranks: which call, and what each rank called.
#include "mismatch.h"

#include <algorithm>
#include <unordered_map>

#include "catena/comm/transport.h"
#include "catena/core/log.h"
#include "comm/communicator_state.h"

namespace catena::comm {

namespace {

struct CallGroup {
  std::string call;
  std::vector<int> ranks;
};

// The calls that are known, each once, in the order of the first rank that made it.
std::vector<CallGroup> group_calls(const std::vector<std::string>& calls) {
  std::vector<CallGroup> groups;
  for (size_t r = 0; r < calls.size(); ++r) {
    if (calls[r].empty()) continue;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const CallGroup& g) { return g.call == calls[r]; });
    if (group == groups.end()) group = groups.insert(group, {calls[r], {}});
    group->ranks.push_back(int(r));
  }
  return groups;
}

// "ranks 0, 2 called X; rank 1 called Y"
std::string list_calls(const std::vector<std::string>& calls) {
  std::string text;
  for (const CallGroup& group : group_calls(calls)) {
    if (!text.empty()) text += "; ";
    text += list_ranks(group.ranks) + " " + group.call;
  }
  return text;
}

// The communicator of a call that `own` and another ring hold with different hashes; 0 when there
// is none. One pass, so that it may run every few steps.
uint64_t differing_communicator(const std::vector<CallRecord>& own, const Rings& rings,
                                const std::vector<uint64_t>& ids) {
  const auto key = [](const CallRecord& call) {
    return call.communicator ^ (call.sequence * 0x9e3779b97f4a7c15u);
  };
  std::unordered_map<uint64_t, const CallRecord*> mine;
  mine.reserve(own.size());
  for (const CallRecord& call : own)
    if (std::binary_search(ids.begin(), ids.end(), call.communicator))
      mine.emplace(key(call), &call);
  for (const auto& ring : rings) {
    for (const CallRecord& call : ring) {
      const auto entry = mine.find(key(call));
      if (entry == mine.end()) continue;
      const CallRecord& same = *entry->second;
      if (same.communicator == call.communicator && same.sequence == call.sequence &&
          same.hash != call.hash)
        return call.communicator;
    }
  }
  return 0;
}

// The communicator itself and the messages of one of its ranks, sorted.
std::vector<uint64_t> ids_of(uint64_t id, int rank, int size) {
  std::vector<uint64_t> ids{id};
  for (int r = 0; r < size; ++r) {
    ids.push_back(pair_id(id, rank, r));
    ids.push_back(pair_id(id, r, rank));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

uint64_t last_call(const std::vector<CallRecord>& ring, uint64_t id) {
  uint64_t last = 0;
  for (const CallRecord& call : ring)
    if (call.communicator == id) last = std::max(last, call.sequence);
  return last;
}

std::optional<uint64_t> last_known_call(const Ring& ring, uint64_t id, size_t depth) {
  const uint64_t last = last_call(ring, id);
  return last > 0 || ring.size() < depth ? std::optional(last) : std::nullopt;
}

namespace {

std::string list_with(const std::vector<std::string>& coordinates, const std::vector<int>& ranks) {
  constexpr size_t kWithCoordinates = 4;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    if (!coordinates.empty() && ranks.size() <= kWithCoordinates)
      text += " (" + coordinates[size_t(ranks[i])] + ")";
  }
  return text;
}

}  // namespace

std::string list_ranks(const std::vector<int>& ranks) { return list_with({}, ranks); }
std::string list_ranks(const Communicator& comm, const std::vector<int>& ranks) {
  return list_with(Communicator::State::of(comm).coordinates, ranks);
}

namespace {

bool is_close(const std::string& call) { return call.starts_with("called close #"); }

// "rank 1 has ended its loop (called close #71 after 70 updates), while rank 0 goes on (called
// all_reduce #71 ...)"; "" where nobody has.
std::string describe_early_end(const std::vector<std::string>& calls) {
  std::string ended, others;
  for (const CallGroup& group : group_calls(calls)) {
    const bool one = group.ranks.size() == 1;
    std::string& text = is_close(group.call) ? ended : others;
    const char* does = &text == &ended ? (one ? " has ended its loop" : " have ended their loops")
                                       : (one ? " goes on" : " go on");
    text += message(text.empty() ? "" : "; ", list_ranks(group.ranks), does, " (", group.call, ")");
  }
  return ended.empty() || others.empty() ? std::string() : message(ended, ", while ", others);
}

// See GradientReducer::before_layout_moves.
bool has_moved(const std::string& call) {
  return call.find("(its parameters moved") != std::string::npos;
}

// "the parameters of rank 1 have moved, those of rank 0 have not"; "" where it is not the matter.
std::string describe_move(const std::vector<std::string>& calls) {
  std::vector<int> moved, others;
  for (const CallGroup& group : group_calls(calls)) {
    std::vector<int>& ranks = has_moved(group.call) ? moved : others;
    ranks.insert(ranks.end(), group.ranks.begin(), group.ranks.end());
  }
  if (moved.empty() || others.empty()) return {};
  for (std::vector<int>* ranks : {&moved, &others}) std::sort(ranks->begin(), ranks->end());
  return message("the parameters of ", list_ranks(moved), " have moved, those of ",
                 list_ranks(others), " have not: ", list_calls(calls),
                 ". Move a model (model.to(device)), or set up another optimizer with it, on all "
                 "ranks in the same step");
}

}  // namespace

std::string describe_mismatch(const std::vector<std::string>& calls, uint64_t sequence,
                              bool exact) {
  std::string text = message("the ranks of this communicator differ in call #", sequence, ": ");
  if (const std::string early = describe_early_end(calls); !early.empty())
    return text + early +
           ". All ranks must make the same updates: after return, break or Trainer::stop() on one "
           "rank the others wait for it";
  if (const std::string move = describe_move(calls); !move.empty()) return text + move;
  text += list_calls(calls);
  if (!exact) text += " (they differed already in a call that is too long ago to be named)";
  return text +
         ". All ranks must make the same calls in the same order, with the same dtype, count, "
         "reduction and root";
}

int odd_rank(const std::vector<std::string>& calls) {
  const auto groups = group_calls(calls);
  // Of two ranks the one that has ended its loop, or moved its parameters, is the odd one.
  for (const CallGroup& group : groups)
    if (groups.size() == 2 && calls.size() == 2 && (is_close(group.call) || has_moved(group.call)))
      return group.ranks[0];
  if (groups.size() != 2 || groups[0].ranks.size() + groups[1].ranks.size() < 3) return -1;
  for (const CallGroup& group : groups)
    if (group.ranks.size() == 1) return group.ranks[0];
  return -1;
}

std::string difference_between(const Rings& rings, size_t own, const std::vector<int>& ranks,
                               uint64_t id, size_t size, int* culprit) {
  const uint64_t communicator =
      differing_communicator(rings[own], rings, ids_of(id, ranks[own], int(size)));
  if (communicator == 0) return {};
  const auto found = first_different_call(rings, communicator);
  if (!found) return {};
  std::vector<std::string> calls(size);
  for (size_t i = 0; i < rings.size(); ++i)
    if (found->calls[i]) calls[size_t(ranks[i])] = "called " + format_call(*found->calls[i]);
  if (culprit) *culprit = odd_rank(calls);
  return describe_mismatch(calls, found->sequence, found->exact);
}

std::string difference_of(const Rings& rings, int rank, uint64_t id) {
  std::vector<int> ranks;
  for (size_t r = 0; r < rings.size(); ++r) ranks.push_back(int(r));
  return difference_between(rings, size_t(rank), ranks, id, rings.size(), nullptr);
}

bool all_came(const Rings& rings, size_t own, const std::vector<int>& ranks, uint64_t id,
              size_t depth) {
  const auto has_made = [&](const Ring& ring, uint64_t communicator) {
    const auto last = last_known_call(ring, communicator, depth);
    return !last || *last >= last_call(rings[own], communicator);
  };
  for (size_t i = 0; i < rings.size(); ++i)
    if (i != own &&
        (!has_made(rings[i], id) || !has_made(rings[i], pair_id(id, ranks[i], ranks[own]))))
      return false;
  return true;
}

std::string missing_call_of(const Rings& rings, uint64_t id) {
  uint64_t made_by_all = UINT64_MAX;
  for (const auto& ring : rings) made_by_all = std::min(made_by_all, last_call(ring, id));
  std::vector<std::string> calls(rings.size());
  bool some = false;
  for (size_t r = 0; r < rings.size(); ++r) {
    calls[r] = message("made no call after #", made_by_all);
    for (const CallRecord& call : rings[r]) {
      if (call.communicator != id || call.sequence != made_by_all + 1) continue;
      calls[r] = "called " + format_call(call);
      some = true;
    }
  }
  return some ? describe_mismatch(calls, made_by_all + 1) : std::string();
}

}  // namespace catena::comm
