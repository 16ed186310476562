// Calls as records: their names, hashes and texts, and where ranks differ. See status_board.h.
#include <map>

#include "status_board.h"

namespace catena::comm {
namespace {

template <std::size_t kCount>
const char* name_at(const char* const (&names)[kCount], std::size_t index) {
  return index < kCount ? names[index] : "unknown";
}

}  // namespace

const char* phase_name(Phase phase) {
  static constexpr const char* kNames[] = {"not started", "launched", "joining", "running",
                                           "finishing",   "finished", "failed"};
  return name_at(kNames, static_cast<std::size_t>(phase));
}

const char* call_op_name(std::uint8_t op) {
  static constexpr const char* kNames[] = {
      "none",   "all_reduce", "reduce_scatter", "all_gather", "broadcast",
      "reduce", "gather",     "scatter",        "all_to_all", "send",
      "recv",   "barrier",    "split",          "object",     "close"};
  return name_at(kNames, op);
}

const char* call_dtype_name(std::uint8_t dtype) {
  static constexpr const char* kNames[] = {"bool",     "int8",    "int16",  "int32",  "int64",
                                           "uint8",    "uint16",  "uint32", "uint64", "float16",
                                           "bfloat16", "float32", "float64"};
  return name_at(kNames, dtype);
}

const char* call_reduction_name(std::uint8_t reduction) {
  static constexpr const char* kNames[] = {"sum", "mean", "min", "max", "product", "weighted"};
  return name_at(kNames, reduction);
}

bool is_message(const CallRecord& record) {
  const auto op = static_cast<CallOp>(record.op);
  return op == CallOp::send || op == CallOp::recv;
}

std::uint64_t fold_call(std::uint64_t previous, const CallRecord& record) {
  // One multiply-xorshift round a field: every bit of every field reaches every bit of the hash.
  const auto mix = [](std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e37'79b9'7f4a'7c15u;
    return hash ^ (hash >> 29);
  };
  // Both ends of a message hash alike; between which ranks it goes is in `communicator`.
  const bool message = is_message(record);
  const auto op = message ? static_cast<std::uint8_t>(CallOp::send) : record.op;
  const std::int32_t root = message ? -1 : record.root;
  const std::uint64_t codes = std::uint64_t{op} | std::uint64_t{record.dtype} << 8 |
                              std::uint64_t{record.reduction} << 16 |
                              std::uint64_t{static_cast<std::uint32_t>(root)} << 32;
  std::uint64_t hash = mix(previous + 0x2545'f491'4f6c'dd1du, record.sequence);
  hash = mix(hash, codes);
  hash = mix(hash, record.count);
  return mix(hash, record.communicator);
}

std::string format_call(const CallRecord& record) {
  std::string text = call_op_name(record.op);
  text.append(" #").append(std::to_string(record.sequence));
  const auto op = static_cast<CallOp>(record.op);
  const bool reduces =
      op == CallOp::all_reduce || op == CallOp::reduce_scatter || op == CallOp::reduce;
  if (reduces) text.append(" ").append(call_reduction_name(record.reduction));
  if (op != CallOp::barrier && op != CallOp::split && op != CallOp::close) {
    text.append(" ").append(call_dtype_name(record.dtype));
    text.append("[").append(std::to_string(record.count)).append("]");
  }
  if (record.root < 0) return text;
  const char* role = op == CallOp::send   ? " to rank "
                     : op == CallOp::recv ? " from rank "
                                          : " root ";
  return text.append(role).append(std::to_string(record.root));
}

CallRecord CallHistory::next(CallOp op, std::uint8_t dtype, std::uint8_t reduction,
                             std::int32_t root, std::uint64_t count) {
  CallRecord record;
  record.sequence = ++sequence_;
  record.op = static_cast<std::uint8_t>(op);
  record.dtype = dtype;
  record.reduction = reduction;
  record.root = root;
  record.count = count;
  record.communicator = communicator_;
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
