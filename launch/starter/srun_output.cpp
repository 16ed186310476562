#include "starter/srun_output.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace catena::launch {
namespace {

// Lines about the end of a step. The report says what they mean.
constexpr std::array kEnding = {"Terminating StepId", "Terminating job step", "Job step aborted",
                                "CANCELLED AT", "forcing job termination"};
constexpr std::array kOthers = {"Force Terminated", "got SIGCONT", "First task exited"};
// Said where it binds nothing, which is what it was asked for.
constexpr const char* kNoBinding = "lacks support for cpu binding";
constexpr const char* kNoMemory = "Out Of Memory";

// Slurm describes signals as strsignal() does in English. 0: it is not one.
int signal_of(const std::string& text) {
  if (text.starts_with(kNoMemory)) return SIGKILL;
  for (int signal = 1; signal < 32; ++signal) {
    const char* description = sigdescr_np(signal);
    if (description && text.starts_with(description)) return signal;
  }
  return 0;
}

// "n2" of "slurmstepd-n2: error: ..."; "" where the daemon does not say its node.
std::string node_of_daemon(const std::string& line) {
  constexpr std::string_view kName = "slurmstepd-";
  if (!line.starts_with(kName)) return "";
  return line.substr(kName.size(), line.find(':') - kName.size());
}

std::string rest_after(const std::string& text, const std::string& phrase) {
  const std::size_t at = text.find(phrase);
  return at == std::string::npos ? "" : text.substr(at + phrase.size());
}

// One that something follows, so that no digit is missing.
std::optional<int> whole_number_after(const std::string& text, const std::string& phrase) {
  const std::string rest = rest_after(text, phrase);
  const std::size_t end = rest.find_first_not_of("0123456789");
  return end == std::string::npos ? std::nullopt : parse_number(rest.substr(0, end));
}

}  // namespace

void SrunOutput::feed(std::string_view bytes) {
  for (const std::string& line : take_lines(rest_, bytes)) take_line(line);
}

// A step that is cancelled loses all its tasks at once; where one of them has failed, the others
// are asked to end, and do.
void SrunOutput::finish() {
  if (!rest_.empty()) take_line(std::exchange(rest_, ""));
  const bool at_once = killed_groups_ > 1 && !ended_otherwise_;
  if (findings_.ended_for.empty() && cancelled_ && !forced_ && (cancelled_first_ || at_once))
    findings_.ended_for = "the step was cancelled";
  if (!findings_.ended_for.empty()) findings_.killed_rank.reset();
}

// MPI_Abort has Slurm kill all tasks, so that its rank process may not come to report. The library
// says it in the program, before.
void SrunOutput::see_error_of_rank(int rank, std::string_view bytes) {
  if (findings_.abort_rank) return;
  std::string& text = errors_[rank];
  text += bytes;
  std::optional<int> code;
  if (text.find("MPI_ABORT was invoked on rank") != std::string::npos)
    code = whole_number_after(text, "with errorcode ");  // Open MPI
  if (text.find("application called MPI_Abort(") != std::string::npos)
    code = whole_number_after(text.substr(text.find("MPI_Abort(")), ", ");  // MPICH
  if (code) {
    findings_.abort_rank = rank;
    findings_.abort_code = *code;
  }
  constexpr std::size_t kKept = 400;
  if (text.size() > kKept) text.erase(0, text.size() - kKept);
}

void SrunOutput::take_line(const std::string& line) {
  if (line.find(kNoBinding) != std::string::npos) return;
  const bool of_tasks =
      line.starts_with("srun: error: ") &&
      (line.find(": task ") != std::string::npos || line.find(": tasks ") != std::string::npos);
  learn(line);
  if (of_tasks) learn_of_tasks(line);
  const bool ending = contains_any(line, kEnding);
  ending_ = ending_ || ending;
  // That memory ran out is not known to anybody else.
  const bool memory = line.find(kNoMemory) != std::string::npos;
  if ((of_tasks && !memory) || ending || contains_any(line, kOthers))
    withheld_ += line + "\n";
  else
    on_line_(line);
}

// "srun: error: n2: task 3: Killed", "srun: error: n1: tasks 0-2: Terminated"
void SrunOutput::learn_of_tasks(const std::string& line) {
  tasks_ended_ = true;
  const std::string text = rest_after(line, "srun: error: ");
  const std::string host = text.substr(0, text.find(':'));
  const std::string tasks =
      rest_after(text, text.find(": tasks ") == std::string::npos ? ": task " : ": tasks ");
  if (launcher_missing_ && findings_.broken_host.empty()) findings_.broken_host = host;
  const std::string way = rest_after(tasks, ": ");
  const int signal = signal_of(way);
  const bool killed = signal == SIGKILL && !way.starts_with(kNoMemory);
  ended_otherwise_ = ended_otherwise_ || !killed;
  if (killed) ++killed_groups_;
  if (signal == 0 || ending_ || findings_.killed_rank) return;
  findings_.killed_rank = std::atoi(tasks.c_str());
  findings_.killed_signal = signal;
  findings_.killed_host = host;
}

void SrunOutput::learn(const std::string& line) {
  if (line.find("error: execve()") != std::string::npos) {
    launcher_missing_ = true;
    if (findings_.broken_host.empty()) findings_.broken_host = node_of_daemon(line);
  }
  if (const std::string node = rest_after(line, "Node failure on "); !node.empty()) {
    findings_.daemons_failed = true;
    findings_.lost_host = node;
  }
  forced_ = forced_ || (!cancelled_ && line.find("forcing job termination") != std::string::npos);
  if (line.find("CANCELLED AT") == std::string::npos) return;
  cancelled_first_ = cancelled_first_ || !tasks_ended_;
  cancelled_ = true;
  // "... CANCELLED AT 2026-11-24T12:12:39 DUE TO TIME LIMIT ***"
  const std::string cause = rest_after(line, " DUE TO ");
  if (!cause.empty()) findings_.ended_for = cause.substr(0, cause.find(" ***"));
}

}  // namespace catena::launch
