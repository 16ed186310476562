// A call as it is stored in shared memory: its signature, its number on the communicator and the
// hash of everything before it. Ranks that made the same calls have the same hashes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catena/status/call_signature.h"

namespace catena::comm {

// One call as every rank of the communicator must have made it, or one end of a message, as this
// rank calls it.
struct CallRecord {
  std::uint64_t sequence = 0;  // 1 for the first call on the communicator
  CallSignature call;
  std::uint64_t communicator = 0;  // for a message it identifies the two ranks, see pair_id
  std::uint64_t hash = 0;          // of this call and all before it on the communicator
};
static_assert(sizeof(CallRecord) == 48 && std::is_trivially_copyable_v<CallRecord>);

inline bool is_message(const CallRecord& record) { return is_message(record.call); }

// The hash of a call after calls that hashed to `previous`; record.hash is not read. A send and its
// recv have the same, and so have a call inside a group and one outside.
std::uint64_t fold_call(std::uint64_t previous, const CallRecord& record);

// The messages from rank `source` to rank `destination` count as a separate communicator.
std::uint64_t pair_id(std::uint64_t communicator, int source, int destination);

// "all_reduce #12 sum float32[1000]", "broadcast #3 int64[4] root 0", "send #1 float32[4] to rank
// 1", "all_reduce #12 mean float32[1000] (bucket 0 of optimizer 2)"
std::string format_call(const CallSignature& call, std::uint64_t sequence);
inline std::string format_call(const CallRecord& record) {
  return format_call(record.call, record.sequence);
}

// The running sequence number and hash of one communicator; each communicator owns one.
class CallHistory {
 public:
  explicit CallHistory(std::uint64_t communicator) : communicator_(communicator) {}
  // The record of the next call, complete with sequence and hash.
  CallRecord next(const CallSignature& call);
  std::uint64_t sequence() const { return sequence_; }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t communicator_;
  std::uint64_t sequence_ = 0;
  std::uint64_t hash_ = 0;
};

// The first call in which ranks differ. `calls` has one entry a ring; an entry is empty when that
// rank has not made the call yet, or when it was so long ago that its ring no longer holds it.
struct CallDifference {
  std::uint64_t sequence = 0;
  bool exact = true;  // false: the ranks differed already before the oldest call still in the rings
  std::vector<std::optional<CallRecord>> calls;
};
std::optional<CallDifference> first_different_call(
    const std::vector<std::vector<CallRecord>>& rings, std::uint64_t communicator);

}  // namespace catena::comm
