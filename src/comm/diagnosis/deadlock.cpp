// Ranks that wait for each other in a circle: who they are, and what is said of them.
#include "deadlock.h"

#include <algorithm>

#include "catena/comm/transport.h"
#include "catena/core/log.h"

namespace catena::comm {

// A rank needs all that it waits for, so it is stuck if one of them is. What remains when every
// rank that waits for none of the remaining ones is taken away is stuck.
std::vector<int> stuck_ranks(const std::vector<std::vector<int>>& waits) {
  std::vector<char> stuck(waits.size(), 1);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t r = 0; r < waits.size(); ++r) {
      const auto is_stuck = [&](int other) { return stuck[size_t(other)] != 0; };
      if (!stuck[r] || std::any_of(waits[r].begin(), waits[r].end(), is_stuck)) continue;
      stuck[r] = 0;
      changed = true;
    }
  }
  std::vector<int> ranks;
  for (size_t r = 0; r < stuck.size(); ++r)
    if (stuck[r]) ranks.push_back(int(r));
  return ranks;
}

std::vector<int> stuck_ranks(std::vector<std::vector<int>> waits,
                             const std::function<bool(int)>& closes) {
  const std::vector<int> all = stuck_ranks(waits);
  for (const int r : all)
    if (closes(r)) waits[size_t(r)].clear();
  const std::vector<int> others = stuck_ranks(waits);
  return others.empty() ? all : others;
}

namespace {

// The ranks that close the communicator; none if all do.
std::vector<int> leavers(const std::vector<std::optional<CallRecord>>& calls) {
  std::vector<int> ranks;
  bool others = false;
  for (size_t r = 0; r < calls.size(); ++r) {
    if (!calls[r]) continue;
    if (is_close(calls[r]->call))
      ranks.push_back(int(r));
    else
      others = true;
  }
  return others ? ranks : std::vector<int>();
}

// What the call of rank r is called.
std::string call_name(const std::vector<std::optional<CallRecord>>& calls,
                      const std::vector<CallName>& names, size_t r) {
  return names.empty() ? format_call(*calls[r]) : names[r].text;
}

// "rank 1 has left (called close #6), while rank 0 waits in send #15 float32[96] to rank 1"
std::string describe_leaving(const std::vector<std::optional<CallRecord>>& calls,
                             const std::vector<CallName>& names) {
  std::string left, others;
  for (size_t r = 0; r < calls.size(); ++r) {
    if (!calls[r]) continue;
    const std::string call = call_name(calls, names, r);
    if (is_close(calls[r]->call))
      left += message(left.empty() ? "" : ", ", "rank ", r, " has left (called ", call, ")");
    else
      others += message(others.empty() ? "" : ", ", "rank ", r, " waits in ", call);
  }
  return message(left, ", while ", others,
                 ". All ranks must come to the end together: others wait for the calls of a rank "
                 "that returns, breaks off, calls Trainer::stop(), or leaves out a backward pass "
                 "through messages");
}

std::vector<std::string> texts_of(const std::vector<std::optional<CallRecord>>& calls,
                                  const std::vector<CallName>& names = {}) {
  std::vector<std::string> texts(calls.size());
  for (size_t r = 0; r < calls.size(); ++r)
    if (calls[r]) texts[r] = "waited in " + call_name(calls, names, r);
  return texts;
}

}  // namespace

std::string describe_deadlock(const std::vector<std::optional<CallRecord>>& calls,
                              const std::vector<CallName>& names) {
  if (!leavers(calls).empty()) return describe_leaving(calls, names);
  uint64_t sequence = UINT64_MAX;
  bool only_messages = true;
  std::string text;
  const std::vector<std::string> texts = texts_of(calls, names);
  for (size_t r = 0; r < calls.size(); ++r) {
    if (!calls[r]) continue;
    sequence = std::min(sequence, calls[r]->sequence);
    only_messages &= is_message(*calls[r]);
    text += message(text.empty() ? "" : "; ", "rank ", r, " ", texts[r]);
  }
  const bool serve =
      std::any_of(names.begin(), names.end(), [](const CallName& n) { return n.serves; });
  const char* const group =
      serve ? "" : " (a send waits for its recv: put exchanges into one group)";
  if (!only_messages) return message("deadlock: ", describe_mismatch(texts, sequence), group);
  return message("deadlock: ", text,
                 ". None of these messages can begin, as the ranks wait for each other; let one of "
                 "them make its calls in the other order",
                 group);
}

int odd_rank(const std::vector<std::optional<CallRecord>>& calls) {
  const std::vector<int> left = leavers(calls);
  return left.size() == 1 ? left[0] : odd_rank(texts_of(calls));
}

}  // namespace catena::comm
