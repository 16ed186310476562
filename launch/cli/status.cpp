#include "cli/status.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

#include "base/text.h"
#include "catena/core/printable.h"
#include "core/read_file.h"
#include "job/job_states.h"
#include "status/status_board.h"
#include "wire/board_name.h"
#include "wire/job_words.h"

namespace catena::launch {
namespace {

namespace fs = std::filesystem;

// A job as its rank processes on this machine show it.
struct RunningJob {
  JobSpec spec;
  int launcher = 0;                 // process of catena-run, 0: not on this machine
  std::vector<int> rank_processes;  // of this machine, ascending
  std::optional<comm::StatusBoard> board;
};

bool is_own_process(const fs::path& process) {
  struct stat status {};
  return stat(process.c_str(), &status) == 0 && status.st_uid == geteuid();
}

// Empty when the process is no rank process.
std::optional<JobSpec> job_of_process(const fs::path& process) {
  std::string bytes;  // none where the process has ended meanwhile
  read_file((process / "cmdline").string(), bytes);
  if (bytes.empty()) return std::nullopt;
  bytes.pop_back();
  std::vector<std::string> words = split(bytes, '\0');
  if (words.size() < 3 || words[1] != kRankProcess) return std::nullopt;
  words.erase(words.begin(), words.begin() + 2);
  return look_at_rank_process_words(words);
}

// The process that reads the pipe of the ranks, "/proc/4711/fd/5:...".
int launcher_of(const JobSpec& spec) {
  const std::vector<std::string> parts = split(spec.rank_pipe, '/');
  return parts.size() > 2 ? parse_number(parts[2]).value_or(0) : 0;
}

// Its descriptor is all that is left of a board once all ranks of the host have opened it.
std::optional<comm::StatusBoard> board_of_process(const fs::path& process) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(process / "fd", error)) {
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (target.find(kBoardPrefix) == std::string::npos) continue;
    try {
      return comm::StatusBoard::attach(entry.path().string());
    } catch (const std::exception&) {  // the process ends
    }
  }
  return std::nullopt;
}

std::map<std::string, RunningJob> find_jobs() {
  std::map<std::string, RunningJob> jobs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto pid = parse_number(entry.path().filename().string());
    if (!pid || !is_own_process(entry.path())) continue;
    auto spec = job_of_process(entry.path());
    if (!spec) continue;
    RunningJob& job = jobs[spec->id];
    job.rank_processes.push_back(*pid);
    if (!job.board) job.board = board_of_process(entry.path());
    if (job.launcher == 0) job.launcher = launcher_of(*spec);
    job.spec = std::move(*spec);
  }
  for (auto& [id, job] : jobs) std::sort(job.rank_processes.begin(), job.rank_processes.end());
  return jobs;
}

bool is_named(const RunningJob& job, const std::string& wanted) {
  if (wanted == job.spec.id) return true;
  const auto pid = parse_number(wanted);
  if (!pid || *pid == 0) return false;
  if (*pid == job.launcher) return true;
  const auto& processes = job.rank_processes;
  if (std::find(processes.begin(), processes.end(), *pid) != processes.end()) return true;
  for (int slot = 0; job.board && slot < job.board->slots(); ++slot)
    if (job.board->read(slot).pid == *pid) return true;
  return false;
}

std::string describe_job(const RunningJob& job) {
  std::string text = "job " + job.spec.id;
  if (job.launcher != 0) text += ", catena-run is process " + std::to_string(job.launcher);
  text += ", " + std::to_string(job.spec.ranks) + (job.spec.ranks == 1 ? " rank" : " ranks");
  if (job.spec.restart.value_or(0) > 0) text += ", restart " + std::to_string(*job.spec.restart);
  return job.spec.program.empty() ? text : text + ": " + shell_quote(job.spec.program);
}

void print_ranks(const RunningJob& job) {
  if (!job.board && !job.rank_processes.empty()) std::puts("  its status board cannot be read");
  const comm::StatusBoard* const board = job.board ? &*job.board : nullptr;
  const std::string text = describe_ranks(job.spec, board, published_states(job.launcher));
  std::fputs(printable(text).c_str(), stdout);
}

}  // namespace

int run_status(const std::vector<std::string>& wanted) {
  if (wanted.size() > 1)
    throw UserError("--status " + join(wanted, " ") +
                    ": expected the number of one job or process, or nothing");
  std::map<std::string, RunningJob> jobs = find_jobs();
  if (!wanted.empty())
    std::erase_if(jobs, [&](const auto& entry) { return !is_named(entry.second, wanted[0]); });
  if (jobs.empty()) {
    std::fprintf(stderr, "catena-run: no job %sof this user has ranks on this machine\n",
                 wanted.empty() ? "" : (wanted[0] + " ").c_str());
    return 1;
  }
  for (const auto& [id, job] : jobs) {
    std::puts(printable(describe_job(job)).c_str());
    if (jobs.size() == 1) print_ranks(job);
  }
  if (jobs.size() > 1) std::puts("catena-run --status JOB shows the ranks of one of them");
  return 0;
}

}  // namespace catena::launch
