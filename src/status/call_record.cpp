// Calls as records: their names, hashes and texts, and where ranks differ. See call_record.h.
#include "call_record.h"

#include <cstdio>
#include <map>

namespace catena::comm {
namespace {

template <std::size_t kCount, class Enum>
const char* name_at(const char* const (&names)[kCount], Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < kCount ? names[index] : "unknown";
}

// What the call was made for, where that is not the operation itself.
std::string called_as(const CallSignature& call) {
  switch (call.kind) {
    case CallKind::kObject: return std::string(name(call.op)) + "_object";
    case CallKind::kSplit: return "split";
    case CallKind::kClose: return "close";
    default: return name(call.op);
  }
}

// " (over axis 2 of mesh 1)", " (over axes 0, 2 of mesh 1)". Records hold no names.
std::string axes_text(const CallTag& tag) {
  std::string axes;
  for (int axis = 0; axis < 31; ++axis)
    if ((tag.part >> axis & 1) != 0) axes += (axes.empty() ? "" : ", ") + std::to_string(axis);
  const char* const noun = axes.find(',') == std::string::npos ? "axis " : "axes ";
  return " (over " + (noun + axes) + " of mesh " + std::to_string(tag.owner) + ")";
}

// " (bucket 0 of optimizer 2)"; "" for no tag.
std::string tag_text(const CallTag& tag) {
  const std::string part = std::to_string(tag.part);
  switch (tag.kind) {
    case TagKind::kBucket:
      return " (bucket " + part + " of optimizer " + std::to_string(tag.owner) + ")";
    case TagKind::kFollowing:
      return " (bucket " + part + " of optimizer " + std::to_string(tag.owner) + ", in a batch)";
    case TagKind::kAgreement: return " (agreement of optimizer " + std::to_string(tag.owner) + ")";
    case TagKind::kLayout:
      return " (its parameters moved, of optimizer " + std::to_string(tag.owner) + ")";
    case TagKind::kStates:
      return " (the states of optimizer " + std::to_string(tag.owner) +
             ", which all ranks gather in Optimizer::state)";
    case TagKind::kObject: {  // its name is not recorded: a number by which types differ
      char number[32];
      std::snprintf(number, sizeof(number), " (of type %08x)", static_cast<unsigned>(tag.part));
      return number;
    }
    case TagKind::kUpdates: return " after " + part + (tag.part == 1 ? " update" : " updates");
    case TagKind::kMesh: return axes_text(tag);
    default: return {};
  }
}

}  // namespace

const char* name(CommOp op) {
  static constexpr const char* kNames[] = {
      "none",   "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
      "gather", "scatter",    "all_to_all",     "send",       "recv",      "barrier"};
  return name_at(kNames, op);
}

const char* name(Reduction reduction) {
  static constexpr const char* kNames[] = {"sum", "mean", "min", "max", "product", "weighted"};
  return name_at(kNames, reduction);
}

std::uint64_t fold_call(std::uint64_t previous, const CallRecord& record) {
  // One multiply-xorshift round a field: every bit of every field reaches every bit of the hash.
  const auto mix = [](std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e37'79b9'7f4a'7c15u;
    return hash ^ (hash >> 29);
  };
  const auto code = [](auto value) { return static_cast<std::uint64_t>(value); };
  const CallSignature& call = record.call;
  // Both ends of a message hash alike; between which ranks it goes is in `communicator`.
  const bool message = is_message(call);
  const CommOp op = message ? CommOp::kSend : call.op;
  const std::int32_t root = message ? -1 : call.root;
  const CallKind kind = is_grouped(call) ? CallKind::kArrays : call.kind;
  const std::uint64_t codes = code(op) | code(call.dtype) << 8 | code(call.reduction) << 16 |
                              code(kind) << 24 | code(static_cast<std::uint32_t>(root)) << 32;
  std::uint64_t hash = mix(previous + 0x2545'f491'4f6c'dd1du, record.sequence);
  hash = mix(hash, codes);
  hash = mix(hash, code(call.count));
  const CallTag tag = call.tag.kind == TagKind::kUpdates ? CallTag() : call.tag;
  hash = mix(hash, code(tag.kind) | code(tag.owner) << 16 |
                       code(static_cast<std::uint32_t>(tag.part)) << 32);
  return mix(hash, record.communicator);
}

std::uint64_t pair_id(std::uint64_t communicator, int source, int destination) {
  return fold_call(communicator, {.call = {.root = source, .count = destination}});
}

std::string format_call(const CallSignature& call, std::uint64_t sequence) {
  std::string text = called_as(call);
  text.append(" #").append(std::to_string(sequence));
  const bool is_object = call.kind == CallKind::kObject;
  if (reduces(call.op) && !is_object) text.append(" ").append(name(call.reduction));
  if (call.op != CommOp::kBarrier && !is_object) {
    // Records come from other processes, perhaps from one that died while it wrote.
    text.append(" ").append(int(call.dtype) < kDtypeCount ? name(call.dtype) : "unknown");
    text.append("[").append(std::to_string(call.count)).append("]");
  }
  text += tag_text(call.tag);
  if (call.root < 0) return text;
  const char* role = call.op == CommOp::kSend   ? " to rank "
                     : call.op == CommOp::kRecv ? " from rank "
                                                : " root ";
  return text.append(role).append(std::to_string(call.root));
}

CallRecord CallHistory::next(const CallSignature& call) {
  CallRecord record{.sequence = ++sequence_, .call = call, .communicator = communicator_};
  record.hash = hash_ = fold_call(hash_, record);
  return record;
}

std::optional<CallDifference> first_different_call(
    const std::vector<std::vector<CallRecord>>& rings, std::uint64_t communicator) {
  std::map<std::uint64_t, std::vector<std::optional<CallRecord>>> by_sequence;
  for (std::size_t ring = 0; ring < rings.size(); ++ring) {
    for (const CallRecord& record : rings[ring]) {
      if (record.communicator != communicator) continue;
      auto& calls = by_sequence[record.sequence];
      calls.resize(rings.size());
      calls[ring] = record;
    }
  }
  for (const auto& [sequence, calls] : by_sequence) {
    const CallRecord* first = nullptr;
    bool hashes_differ = false;
    bool calls_differ = false;
    for (const auto& call : calls) {
      if (!call) continue;
      if (!first) first = &*call;
      hashes_differ |= call->hash != first->hash;
      // The same starting value on both sides compares this call alone.
      calls_differ |= fold_call(0, *call) != fold_call(0, *first);
    }
    // Equal calls with different hashes: the cause is older than the rings.
    if (hashes_differ) return CallDifference{sequence, calls_differ, calls};
  }
  return std::nullopt;
}

}  // namespace catena::comm
