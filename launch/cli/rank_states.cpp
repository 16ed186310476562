#include "cli/rank_states.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "job/report.h"

namespace catena::launch {
namespace {

using comm::CallRecord;
using comm::ExitStage;
using comm::Phase;
using comm::SlotSnapshot;
using comm::StatusBoard;

// Other processes go on while their times are read, so one may be later than `now`.
double seconds_between(std::uint64_t since, std::uint64_t now) {
  return since == 0 || now < since ? 0 : static_cast<double>(now - since) * 1e-9;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), seconds < 100 ? "%.1f s" : "%.0f s", seconds);
  return text;
}

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

std::uint64_t common_communicator(const StatusBoard& board) {
  std::map<std::uint64_t, int> users;
  for (int slot = 0; slot < board.slots(); ++slot)
    if (const std::uint64_t communicator = last_communicator(board, slot); communicator != 0)
      ++users[communicator];
  const auto most = std::max_element(
      users.begin(), users.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == users.end() ? 0 : most->first;
}

}  // namespace

std::string describe_state(const SlotSnapshot& slot, std::uint64_t now) {
  if (slot.phase == Phase::finished) return "ended";
  if (slot.phase == Phase::failed) return describe_failure(slot);
  if (comm::has_died(slot)) return "its process has ended";
  const std::string stopped = comm::is_stopped(slot) ? "stopped (SIGSTOP); " : "";
  return stopped + describe_running(slot, now);
}

std::string describe_stragglers(const std::vector<RankProgress>& ranks) {
  std::uint64_t furthest = 0;
  for (const RankProgress& rank : ranks) furthest = std::max(furthest, rank.calls);
  std::map<std::uint64_t, std::vector<int>> behind;
  std::vector<int> ahead;
  double waited = 0;
  for (const RankProgress& rank : ranks) {
    if (rank.calls < furthest) behind[rank.calls].push_back(rank.rank);
    if (rank.calls < furthest) continue;
    ahead.push_back(rank.rank);
    if (rank.waits) waited = std::max(waited, rank.seconds);
  }
  std::string text;
  for (const auto& [calls, numbers] : behind)
    text += (text.empty() ? "behind: " : "; ") + name_ranks(numbers) + " at call #" +
            std::to_string(calls);
  if (text.empty()) return "";
  text += ", while " + name_ranks(ahead) + (ahead.size() == 1 ? " is" : " are") + " at call #" +
          std::to_string(furthest);
  return text + (waited > 0 ? ", since " + seconds_text(waited) : "") + "\n";
}

std::vector<RankProgress> progress_of(const StatusBoard& board, std::uint64_t now) {
  const std::uint64_t communicator = common_communicator(board);
  std::vector<RankProgress> ranks;
  for (int at = 0; communicator != 0 && at < board.slots(); ++at) {
    const std::optional<std::uint64_t> calls = board.last_sequence(at, communicator);
    const SlotSnapshot slot = board.read(at);
    // A rank that never used it may have no part in it.
    if (!calls || *calls == 0 || slot.phase == Phase::finished) continue;
    const bool waits = slot.in_call && slot.started_sequence == *calls;
    ranks.push_back({slot.rank, *calls, waits, seconds_between(slot.call_since_ns, now)});
  }
  return ranks;
}

}  // namespace catena::launch
