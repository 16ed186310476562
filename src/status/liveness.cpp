// Liveness of a rank: whether it can continue, by its slot and its process. See status_board.h.
#include <signal.h>

#include <cerrno>
#include <cmath>
#include <sstream>
#include <string>

#include "core/read_file.h"
#include "status_board.h"

namespace catena::comm {
namespace {

// Seconds since `since`, which may be a moment after `now` was taken.
double seconds_since(std::uint64_t since, std::uint64_t now) {
  return since == 0 || now < since ? 0 : static_cast<double>(now - since) * 1e-9;
}

std::string whole(double seconds) { return std::to_string(std::lround(seconds)); }

std::string who(const SlotSnapshot& slot) { return "rank " + std::to_string(slot.rank); }

const char* describe_stage(ExitStage stage) {
  switch (stage) {
    case ExitStage::leaving: return "has been in its exit handlers for ";
    case ExitStage::waiting:
      return "has waited at the end of the program, for ranks that do not reach it, for ";
    case ExitStage::ending: return "has been inside MPI_Finalize, which does not return, for ";
    case ExitStage::released:
      return "has been in destructors or exit handlers of the program, after the end of MPI, for ";
    case ExitStage::none: break;
  }
  return nullptr;
}

// Of the slot's process; '\0' when it has ended or is not known.
char state_of(const SlotSnapshot& slot) {
  if (slot.pid <= 0) return '\0';
  const ProcessLife life = process_life(slot.pid);
  return slot.process_start == 0 || slot.process_start == life.start ? life.state : '\0';
}

}  // namespace

std::string describe_stuck(const SlotSnapshot& slot, std::uint64_t now, double margin_seconds) {
  if (slot.limit_ns == 0 || slot.phase == Phase::finished) return {};
  const double allowed = static_cast<double>(slot.limit_ns) * 1e-9 + margin_seconds;
  const std::string limit = " s (the limit is " + whole(allowed - margin_seconds) +
                            " s, CATENA_TIMEOUT or catena-run --timeout)";
  const double in_exit = seconds_since(slot.exit_since_ns, now);
  if (const char* stage = describe_stage(slot.exit_stage); stage && in_exit > allowed)
    return who(slot) + " " + stage + whole(in_exit) + limit;
  const double inside = seconds_since(slot.library_since_ns, now);
  // While it joins, the StartupWatchdog watches it.
  if (inside <= allowed || slot.phase == Phase::joining) return {};
  std::string text = who(slot) + " has been inside one call of MPI for " + whole(inside) + limit;
  if (!slot.operation.empty()) text += ", in " + slot.operation;
  return text + ": MPI or the network below it does not answer";
}

std::string describe_doing(const SlotSnapshot& slot) {
  const char state = state_of(slot);
  const std::string process = " (process " + std::to_string(slot.pid);
  if (state == 'T' || state == 't') return process + " is stopped)";
  if (state == 'D') return process + " waits for a device or a file)";
  if (!slot.operation.empty()) return " (in " + slot.operation + ")";
  return slot.exit_stage == ExitStage::leaving ? " (in its exit handlers)" : "";
}

bool is_stopped(const SlotSnapshot& slot) {
  const char state = state_of(slot);
  return state == 'T' || state == 't';
}

bool has_died(const SlotSnapshot& slot) {
  if (slot.pid <= 0) return false;
  if (kill(slot.pid, 0) != 0 && errno == ESRCH) return true;
  const std::uint64_t start = process_life(slot.pid).start;  // 0 also without a file descriptor
  return start != 0 && slot.process_start != 0 && start != slot.process_start;
}

ProcessLife process_life(int pid) {
  std::string text;
  // Fails also when the process ends after the file was opened.
  if (!read_file("/proc/" + std::to_string(pid) + "/stat", text)) return {};
  // "123 (name) S ...", and the name may hold anything. The state is field 3, the start field 22.
  const std::size_t name_ends = text.rfind(')');
  if (name_ends == std::string::npos || name_ends + 2 >= text.size()) return {};
  std::istringstream fields(text.substr(name_ends + 2));
  ProcessLife life;
  fields >> life.state;
  std::string field;
  for (int i = 4; i < 22; ++i) fields >> field;
  fields >> life.start;
  return life;
}

char process_state(int pid) { return process_life(pid).state; }

}  // namespace catena::comm
