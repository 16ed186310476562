#include "wire/state_report.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace catena::launch {
namespace {

using comm::CallRecord;
using comm::ExitStage;
using comm::Phase;
using comm::SlotSnapshot;
using comm::StatusBoard;

std::string describe_failure(const SlotSnapshot& slot) {
  const std::string& text =
      slot.own_failure.present ? slot.own_failure.text : slot.peer_failure.text;
  return text.empty() ? "failed" : "failed: " + text.substr(0, text.find('\n'));
}

std::string describe_computing(const SlotSnapshot& slot, std::uint64_t now) {
  const std::uint64_t since = slot.idle_since_ns != 0 ? slot.idle_since_ns : slot.phase_since_ns;
  std::string text = "computing for " + seconds_text(seconds_between(since, now));
  if (!slot.operation.empty()) text += " (" + slot.operation + ")";
  return slot.last_call.empty() ? text + ", no call yet" : text + ", after " + slot.last_call;
}

std::string describe_running(const SlotSnapshot& slot, std::uint64_t now) {
  const std::string phase_time = seconds_text(seconds_between(slot.phase_since_ns, now));
  if (slot.phase == Phase::empty) return "starting";
  if (slot.in_call) {
    const std::string purpose = slot.purpose.empty() ? "" : " for " + slot.purpose;
    return "in " + slot.operation + purpose + ", since " +
           seconds_text(seconds_between(slot.call_since_ns, now));
  }
  if (slot.exit_stage != ExitStage::none || slot.phase == Phase::finishing)
    return "leaving the program";
  if (slot.phase == Phase::joining) return "joining the others, since " + phase_time;
  if (slot.phase == Phase::launched)
    return "started " + phase_time + " ago, has no communicator yet";
  return describe_computing(slot, now);
}

// The communicator of a rank's last collective; 0: there is none among its last calls. Messages
// concern two ranks alone.
std::uint64_t last_communicator(const StatusBoard& board, int slot) {
  constexpr int kCalls = 256;
  const std::vector<CallRecord> calls = board.calls(slot, kCalls);
  const auto last = std::find_if(calls.rbegin(), calls.rend(),
                                 [](const CallRecord& call) { return !is_message(call); });
  return last == calls.rend() ? 0 : last->communicator;
}

}  // namespace

double seconds_between(std::uint64_t since, std::uint64_t now) {
  return since == 0 || now < since ? 0 : static_cast<double>(now - since) * 1e-9;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), seconds < 100 ? "%.1f s" : "%.0f s", seconds);
  return text;
}

std::string describe_state(const SlotSnapshot& slot, std::uint64_t now) {
  if (slot.phase == Phase::finished) return "ended";
  if (slot.phase == Phase::failed) return describe_failure(slot);
  if (comm::has_died(slot)) return "its process has ended";
  const std::string stopped = comm::is_stopped(slot) ? "stopped (SIGSTOP); " : "";
  return stopped + describe_running(slot, now);
}

StateReport aged(StateReport report, double seconds) {
  if (report.ended) return report;
  report.age += seconds;
  if (report.waits) report.waited += seconds;
  if (report.updates > 0) report.since_update += seconds;
  return report;
}

StateReport state_of_slot(const StatusBoard& board, int at, std::uint64_t now) {
  const SlotSnapshot slot = board.read(at);
  StateReport report;
  report.rank = slot.rank;
  report.host = slot.host;
  report.pid = slot.pid;
  report.state = describe_state(slot, now);
  report.ended = slot.phase == Phase::finished;
  report.communicator = last_communicator(board, at);
  if (report.communicator != 0)
    report.calls = board.last_sequence(at, report.communicator).value_or(0);
  report.waits = slot.in_call && slot.started_sequence == report.calls;
  if (report.waits) report.waited = seconds_between(slot.call_since_ns, now);
  report.updates = slot.updates;
  report.since_update = seconds_between(slot.update_since_ns, now);
  report.step = static_cast<double>(slot.step_ns) * 1e-9;
  report.own_step = static_cast<double>(slot.own_step_ns) * 1e-9;
  return report;
}

}  // namespace catena::launch
