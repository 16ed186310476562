// Ranks that wait for each other in a circle.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "peer_status.h"
#include "status/call_record.h"

namespace catena::comm {

// Whether the rank closes its communicator.
inline bool is_close(const CallSignature& call) { return call.kind == CallKind::kClose; }

// waits[r]: the ranks that rank r cannot go on without, of those that are blocked themselves; none
// when it is not blocked. Returns, in ascending order, the ranks that can never go on: circles, and
// who waits for a rank of one.
std::vector<int> stuck_ranks(const std::vector<std::vector<int>>& waits);
// The same where some ranks wait for the others to close the communicator: without these if the
// others are stuck by themselves, which is what there is to say then.
std::vector<int> stuck_ranks(std::vector<std::vector<int>> waits,
                             const std::function<bool(int)>& closes);
// calls[r] is the call that rank r is stuck in; empty for the others. Ranks that close the
// communicator, while others wait for them, have left early: that is said instead of a deadlock.
// names[r], where given, is what the call of rank r is called; records alone do not say what a call
// serves.
struct CallName {
  std::string text;     // "recv #1 float32[4] from rank 1, in backward of F::send"
  bool serves = false;  // another call, such as F::send: it cannot be put into a group
};
std::string describe_deadlock(const std::vector<std::optional<CallRecord>>& calls,
                              const std::vector<CallName>& names = {});
// The only rank that has left early, or whose call differs from all others (three or more); or -1.
int odd_rank(const std::vector<std::optional<CallRecord>>& calls);

// The same according to the status board: ranks of this host that wait, in calls of communicator
// `id`, for ranks that have not begun these calls and wait themselves. "" when there are none. What
// all have begun alike is in progress, however long it takes; a rank that computes may still come.
// `culprit`, unless null, becomes the rank of the job whose call is the odd one, or -1.
std::string deadlock_on_board(const BoardPlace& place, int size, uint64_t id, int* culprit);

}  // namespace catena::comm
