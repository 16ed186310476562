// Signature of a call of a communicator: the part in which all ranks must agree.
//
// The communicator's checked request, the call that a transport gets and the record that other
// processes read in shared memory all hold this one struct.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "catena/core/dtype.h"

namespace catena::comm {

// What a transport does. Records in shared memory hold the number.
enum class CommOp : uint8_t {
  kNone,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kSend,
  kRecv,
  kBarrier,
};
const char* name(CommOp op);  // "all_reduce", ...; "unknown" for any other number

// How the elements of ranks are combined; kWeighted multiplies by each rank's weight and sums.
enum class Reduction : uint8_t { kSum, kMean, kMin, kMax, kProduct, kWeighted };
const char* name(Reduction reduction);  // "sum", "mean", ...; "unknown" for any other number
// name(reduction), for messages.
inline std::string to_string(Reduction reduction) { return name(reduction); }

// What the operation serves. Ranks that use the same operation for different things disagree.
enum class CallKind : uint8_t {
  kArrays,   // the operation itself
  kGrouped,  // the same, inside a group; agrees with kArrays
  kObject,   // an object call, of which this operation exchanges the sizes
  kSplit,    // the barrier in front of split()
  kClose,    // the barrier in close()
  // The last call of a group, as kGrouped: a rank that is in it waits for all calls of the group.
  kGroupEnd,
};

// What the numbers of a CallTag count.
enum class TagKind : uint16_t {
  kNone,
  kBucket,  // owner: the optimizer, in the order of their setup, from 1; part: its bucket, from 0
  kAgreement,  // owner: as above; what its steps must agree in
  kObject,     // part: a hash of the type of a host object
  kLayout,     // owner: the optimizer whose parameters have moved
  kFollowing,  // as kBucket: a gather in a batch, of which one with kBucket was the first
  kStates,     // owner: as kBucket; its states, of which each rank keeps a part
  kUpdates,    // part: the updates that were made before a close; ranks need not agree in it
  kMesh,       // owner: the mesh, by its number on the communicator; part: a bit for each axis
};

// Which piece of whose work a call serves. Ranks that name different ones disagree, although
// operation and count may be equal.
struct CallTag {
  TagKind kind = TagKind::kNone;
  uint16_t owner = 0;
  int32_t part = 0;

  bool operator==(const CallTag&) const = default;
};

// What ranks must agree on in a call. 24 bytes, without pointers: it is also the record in shared
// memory.
struct CallSignature {
  CommOp op = CommOp::kNone;
  Dtype dtype = Dtype::kUInt8;
  Reduction reduction = Reduction::kSum;  // as the user asked for it
  CallKind kind = CallKind::kArrays;
  int32_t root = -1;  // the root; the destination of a send, the source of a recv; -1: none
  // Elements that a rank contributes to or gets from one other rank: all of x for all_reduce,
  // reduce, broadcast, send and recv; one piece for the others.
  int64_t count = 0;
  CallTag tag = {};

  bool operator==(const CallSignature&) const = default;
};
static_assert(sizeof(CallSignature) == 24 && std::is_trivially_copyable_v<CallSignature>);

// Two ranks take part in a message, all ranks in every other call.
constexpr bool is_message(CommOp op) { return op == CommOp::kSend || op == CommOp::kRecv; }
constexpr bool is_message(const CallSignature& call) { return is_message(call.op); }
// Whether a record is that of a call in a group.
constexpr bool is_grouped(const CallSignature& call) {
  return call.kind == CallKind::kGrouped || call.kind == CallKind::kGroupEnd;
}
// Whether values of different ranks are combined.
constexpr bool reduces(CommOp op) {
  return op == CommOp::kAllReduce || op == CommOp::kReduceScatter || op == CommOp::kReduce;
}

}  // namespace catena::comm
