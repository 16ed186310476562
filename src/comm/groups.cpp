// Groups: calls that are kept until the end of the group and go to the transport together.
#include <utility>

#include "catena/core/profiler_range.h"
#include "catena/core/trace.h"
#include "communicator_state.h"

namespace catena::comm {
namespace {

// What a trace shows of a group: the bytes of all its calls.
void trace_group(std::span<const Call> calls) {
  int64_t bytes = 0;
  for (const Call& call : calls) {
    const Array* array = call.input ? call.input : call.output;
    if (array) bytes += array->nbytes();
  }
  const char* purpose = calls.front().purpose;
  tracing::describe("group", tracing::Category::kCommunication,
                    {.bytes = bytes, .serves = purpose ? purpose : ""});
}

}  // namespace

void Communicator::group(const std::function<void()>& calls) {
  const OneThread caller(*this, "group");
  CATENA_CHECK(CommError, !state_->grouping, "group: a group is already open on this communicator");
  state_->throw_if_failed();
  begin_group();
  try {
    calls();
  } catch (...) {
    drop_group();
    throw;
  }
  end_group();
}

void Communicator::begin_group() {
  state_->grouping = true;
  if (state_->control) state_->control->begin_group();
}

void Communicator::drop_group() {
  state_->grouping = false;
  state_->pending.clear();
  if (state_->control) state_->control->drop_group();
}

void Communicator::end_group() {
  State& s = *state_;
  s.grouping = false;
  if (s.control) s.control->end_group();
  std::vector<State::Pending> pending = std::exchange(s.pending, {});
  if (pending.empty()) return;
  std::vector<Call> calls;
  // Others may take a rank for waiting in all of these calls as soon as they see the last one.
  pending.back().record.call.kind = CallKind::kGroupEnd;
  for (State::Pending& entry : pending) {
    s.own_slot.begin_call(entry.record, entry.call.purpose ? entry.call.purpose : "");
    if (entry.input.defined()) entry.call.input = &entry.input;
    if (entry.output.defined()) entry.call.output = &entry.output;
    calls.push_back(entry.call);
  }
  try {
    const ProfilerRange range("group");
    if (tracing::active()) [[unlikely]]
      trace_group(calls);
    s.transport->run(calls);
  } catch (const std::exception& error) {
    s.mark_failed(error);
    throw;
  }
  for (const State::Pending& entry : pending) s.own_slot.end_call(entry.record);
  if (s.failed.load(std::memory_order_relaxed)) [[unlikely]]
    s.throw_if_failed();
  for (const State::Pending& entry : pending) {
    if (entry.target.defined()) {
      const StreamScope scope(entry.stream);
      entry.target.assign(entry.output);
    } else if (entry.output.defined()) {
      entry.output.note_write();
    }
  }
}

}  // namespace catena::comm
