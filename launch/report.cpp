#include "report.h"

#include <algorithm>
#include <csignal>
#include <map>

#include "process.h"
#include "report_hosts.h"
#include "status/printable.h"
#include "text.h"

namespace catena::launch {
namespace {

struct Culprit {
  int rank = -1;
  std::string error;
  int exit_code = 1;
};

int exit_code_of(const EndRecord& end) {
  // It failed, but it was the launcher that made it end.
  if (end.stop_time != 0 && (end.signal == SIGTERM || end.signal == SIGKILL)) return 1;
  const int code = end.signal != 0 ? 128 + end.signal : end.exit_code;
  return code == 0 ? 1 : code;
}

std::string way_of_ending(const EndRecord& end) {
  if (end.signal != 0) return signal_name(end.signal) + (end.core_dumped ? ", core dumped" : "");
  return "exit code " + std::to_string(end.exit_code);
}

// When the rank failed of its own accord; 0 when it did not. A rank that was told to end while it
// was already failing counts, one that ended because it was told to does not.
std::uint64_t own_failure_time(const EndRecord& end) {
  const bool before_stop = end.stop_time == 0 || end.error_time < end.stop_time;
  const bool has_error = !end.error.empty() && end.error_time != 0 && before_stop && failed(end);
  const bool has_peer_error = !end.peer_error.empty();
  if (has_error && (!has_peer_error || end.error_time <= end.peer_error_time))
    return end.error_time;
  if (has_peer_error || end.stop_time != 0 || !failed(end)) return 0;
  return end.end_time;
}

std::uint64_t victim_time(const EndRecord& end) {
  return failed(end) && !end.peer_error.empty() ? end.peer_error_time : 0;
}

template <typename TimeOf>
int earliest(const JobOutcome& job, TimeOf time_of) {
  int best = -1;
  std::uint64_t best_time = 0;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const auto& end = job.ranks[rank].end;
    const std::uint64_t time = end ? time_of(*end) : 0;
    if (time == 0 || (best >= 0 && time >= best_time)) continue;
    best = static_cast<int>(rank);
    best_time = time;
  }
  return best;
}

const EndRecord& end_of(const JobOutcome& job, int rank) {
  return *job.ranks[static_cast<std::size_t>(rank)].end;
}

bool is_rank(const JobOutcome& job, int rank) {
  return rank >= 0 && rank < static_cast<int>(job.ranks.size());
}

Culprit describe_own_failure(const JobOutcome& job, int rank) {
  const EndRecord& end = end_of(job, rank);
  Culprit culprit{rank, way_of_ending(end), exit_code_of(end)};
  if (!end.error.empty()) culprit.error = end.error;
  const bool aborted = job.hints.abort_rank == rank && end.exit_code == job.hints.abort_code;
  if (end.error.empty() && aborted)
    culprit.error = "MPI_Abort with error code " + std::to_string(end.exit_code);
  return culprit;
}

// All that failed did so because of another rank, and some say which it is.
Culprit describe_victim(const JobOutcome& job, int rank) {
  const EndRecord& end = end_of(job, rank);
  Culprit culprit{rank, end.peer_error, exit_code_of(end)};
  if (end.blamed_rank == rank) return culprit;
  culprit.rank = end.blamed_rank;
  culprit.error += " (noticed by rank " + std::to_string(rank) + ")";
  const auto& blamed = job.ranks[static_cast<std::size_t>(culprit.rank)].end;
  // One that the stop found on its way out keeps its own code.
  if (blamed && failed(*blamed) && (blamed->stop_time == 0 || blamed->signal == 0))
    culprit.exit_code = exit_code_of(*blamed);
  return culprit;
}

bool is_victim(const JobOutcome& job, int rank) {
  const auto& end = job.ranks[static_cast<std::size_t>(rank)].end;
  return end && victim_time(*end) != 0;
}

// The rank that noticed first, of those that know whom to blame if there are any.
int first_victim(const JobOutcome& job) {
  const int knowing = earliest(job, [](const EndRecord& end) {
    return end.blamed_rank >= 0 && end.blamed_rank != end.rank ? victim_time(end) : 0;
  });
  return knowing >= 0 ? knowing : earliest(job, victim_time);
}

std::optional<Culprit> find_culprit(const JobOutcome& job) {
  const int first = earliest(job, own_failure_time);
  if (first >= 0) return describe_own_failure(job, first);
  const MpirunHints& hints = job.hints;
  // SIGALRM is the launcher's own word for "stop", received before the rank process was ready.
  if (hints.killed_rank && is_rank(job, *hints.killed_rank) && hints.killed_signal != SIGALRM)
    return Culprit{*hints.killed_rank, signal_name(hints.killed_signal), 128 + hints.killed_signal};
  if (describe_lost_host(job)) return std::nullopt;
  if (job.standstill && is_rank(job, job.standstill->rank))
    return Culprit{job.standstill->rank, job.standstill->reason, 1};
  // A rank that noticed another one's failure may leave by MPI_Abort: that tells nothing new.
  if (hints.abort_rank && is_rank(job, *hints.abort_rank) && !is_victim(job, *hints.abort_rank))
    return Culprit{*hints.abort_rank,
                   "MPI_Abort with error code " + std::to_string(hints.abort_code),
                   hints.abort_code == 0 ? 1 : hints.abort_code & 255};
  const int victim = first_victim(job);
  if (victim >= 0 && is_rank(job, end_of(job, victim).blamed_rank))
    return describe_victim(job, victim);
  return std::nullopt;
}

std::string host_of(const JobOutcome& job, int rank) {
  const RankOutcome& outcome = job.ranks[static_cast<std::size_t>(rank)];
  if (outcome.hello) return outcome.hello->host;
  if (outcome.end) return outcome.end->host;
  return job.hints.killed_host.empty() ? "an unknown host" : job.hints.killed_host;
}

std::string operation_of(const RankOutcome& outcome) {
  if (!outcome.operation_then.empty()) return outcome.operation_then;
  if (!outcome.end) return outcome.hello ? "unknown" : "not started";
  if (!outcome.end->operation.empty()) return outcome.end->operation;
  if (!failed(*outcome.end)) return "ended with exit code 0";
  return outcome.end->last_call.empty() ? "" : "after " + outcome.end->last_call;
}

// One line for all ranks that did the same; nothing when nobody said what it did.
std::string describe_others(const JobOutcome& job, int culprit) {
  std::map<std::string, std::vector<int>> groups;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank)
    if (static_cast<int>(rank) != culprit)
      groups[operation_of(job.ranks[rank])].push_back(static_cast<int>(rank));
  groups.erase("");
  std::string text;
  constexpr std::size_t kMostGroups = 8;
  std::size_t printed = 0;
  for (const auto& [operation, ranks] : groups) {
    if (++printed > kMostGroups) return text + "  ...\n";
    text += ranks.size() > 1 ? "  ranks " : "  rank ";
    text.append(format_ranks(ranks)).append(": ").append(operation).append("\n");
  }
  return text;
}

// A line of the stack that Open MPI prints for a signal, "[host:123] [ 7] libc.so ...": it would
// crowd out what the program said last. The whole of it is in the output and the log.
bool is_backtrace(const std::string& line) {
  const std::size_t pid = line.find(':'), end = line.find("] ");
  if (!line.starts_with("[") || pid == std::string::npos || end == std::string::npos || pid > end ||
      line.find_first_not_of("0123456789", pid + 1) != end)
    return false;
  const std::string rest = line.substr(end + 2);
  return rest.starts_with("[") || rest.starts_with("***") || rest.starts_with("Signal") ||
         rest.starts_with("Failing at address");
}

std::string last_lines(const std::string& text) {
  constexpr std::size_t kMostLines = 8;
  std::vector<std::string> lines = split(trim(text), '\n');
  std::erase_if(lines, [](const std::string& line) { return line.empty() || is_backtrace(line); });
  if (lines.size() > kMostLines)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kMostLines));
  std::string indented;
  for (const std::string& line : lines)
    indented.append("    ").append(comm::printable(line)).append("\n");
  return indented;
}

std::string describe_end(const EndRecord& end, const std::string& already_said) {
  std::string text;
  const bool by_itself = !end.not_started && end.stop_time == 0 && failed(end);
  if (by_itself && way_of_ending(end) != already_said)
    text += "  it ended with " + way_of_ending(end) + "\n";
  if (!end.operation.empty()) text += "  it was doing: " + end.operation + "\n";
  if (!end.last_call.empty() && !end.operation.starts_with(end.last_call))
    text += "  its last collective: " + end.last_call + "\n";
  if (const std::string lines = last_lines(end.last_lines); !lines.empty())
    text += "  the end of its standard error:\n" + lines;
  return text;
}

// Whatever the error's own text looks like.
std::string one_line(const std::string& error) {
  std::string line = comm::printable(error);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

Report report_culprit(const JobOutcome& job, const Culprit& culprit) {
  const RankOutcome& outcome = job.ranks[static_cast<std::size_t>(culprit.rank)];
  const std::string error = one_line(culprit.error);
  Report report{culprit.exit_code, "catena-run: rank " + std::to_string(culprit.rank) + " on " +
                                       host_of(job, culprit.rank) + " failed first: " + error +
                                       "\n"};
  if (outcome.end)
    report.text += describe_end(*outcome.end, culprit.error);
  else if (!outcome.operation_then.empty())
    report.text += "  it was doing: " + outcome.operation_then + "\n";
  report.text += describe_others(job, culprit.rank);
  report.text += describe_network(job);
  if (outcome.hello && !outcome.hello->log.empty())
    report.text += "  log: " + outcome.hello->log + "\n";
  return report;
}

// Ranks saw that others did not come, and nobody knows whose fault it is: not that of the rank that
// noticed first.
Report report_unknown(const JobOutcome& job, int victim) {
  const std::string noticed = one_line(end_of(job, victim).peer_error);
  const std::string by = "rank " + std::to_string(victim) + " on " + host_of(job, victim);
  const auto host = describe_unaccounted_host(job);
  std::string text = host ? "catena-run: " + *host + "\n  noticed by " + by + ": " + noticed + "\n"
                          : "catena-run: no rank is known to be at fault: " + noticed +
                                " (noticed by " + by + ")\n";
  return {host ? 1 : exit_code_of(end_of(job, victim)),
          text + describe_others(job, -1) + describe_network(job)};
}

template <typename Predicate>
std::vector<int> ranks_where(const JobOutcome& job, Predicate predicate) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank)
    if (predicate(job.ranks[rank])) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

struct Unreached {
  std::string text;  // "" when that is not it
  std::string host;  // one of them
};

// What ssh said of a host, or which hosts nothing was heard of.
Unreached describe_unreached(const JobOutcome& job) {
  const std::vector<std::string> hosts = silent_hosts(job);
  if (hosts.empty()) return {};
  const MpirunHints& hints = job.hints;
  const bool named = std::find(hosts.begin(), hosts.end(), hints.unreached_host) != hosts.end();
  const bool several = !named && hosts.size() > 1;
  Unreached unreached;
  unreached.host = named ? hints.unreached_host : hosts.front();
  unreached.text = several ? "catena-run: hosts " : "catena-run: host ";
  unreached.text += named ? unreached.host : join(hosts, ", ");
  if (hints.no_ssh)
    unreached.text += " cannot be reached: there is no ssh here (apt-get install openssh-client)\n";
  else if (!hints.unreached_reason.empty())
    unreached.text += " could not be reached: " + hints.unreached_reason + "\n";
  else
    unreached.text += std::string(several ? " have" : " has") +
                      " started no rank; what mpirun says about it stands above\n";
  return unreached;
}

Report report_mpirun_failure(const JobOutcome& job) {
  const MpirunHints& hints = job.hints;
  if (!hints.broken_host.empty())
    return {127, "catena-run: " + name_host(job, hints.broken_host) +
                     " cannot start catena-run: it is missing there, or is no executable file; "
                     "every host needs it in the same place\n"};
  const std::string ended = "mpirun ended with exit code " + std::to_string(job.mpirun_status) +
                            " and no rank reported a failure\n";
  const Unreached unreached = describe_unreached(job);
  // The exit codes of a mpirun that misses a host are a matter of chance.
  const int code = job.mpirun_status == 0 || !unreached.text.empty() ? 1 : job.mpirun_status;
  std::string text = "catena-run: " + ended;
  if (!unreached.text.empty())
    text = unreached.text + "  " + ended +
           "  every host must answer to ssh without a password (try: ssh " + unreached.host +
           " true) and have catena-run in the same place\n";
  const auto missing = ranks_where(job, [](const RankOutcome& rank) { return !rank.hello; });
  if (!missing.empty()) text += "  never started: ranks " + format_ranks(missing) + "\n";
  const auto silent =
      ranks_where(job, [](const RankOutcome& rank) { return rank.hello && !rank.end; });
  if (!silent.empty()) text += "  ended without a report: ranks " + format_ranks(silent) + "\n";
  return {code, text};
}

}  // namespace

bool failed(const EndRecord& end) {
  return end.not_started || end.signal != 0 || end.exit_code != 0;
}

std::vector<std::string> silent_hosts(const JobOutcome& job) {
  const auto add = [](std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  std::vector<std::string> heard, silent;
  const std::size_t known = std::min(job.planned_hosts.size(), job.ranks.size());
  for (std::size_t rank = 0; rank < known; ++rank)
    if (job.ranks[rank].hello) add(heard, job.planned_hosts[rank]);
  for (std::size_t rank = 0; rank < known; ++rank) {
    const std::string& name = job.planned_hosts[rank];
    if (!name.empty() && std::find(heard.begin(), heard.end(), name) == heard.end())
      add(silent, name);
  }
  const auto short_name = [](const std::string& name) { return name.substr(0, name.find('.')); };
  const std::string here = host_name();
  std::erase_if(silent, [&](const std::string& name) {
    return name == "localhost" || name == "127.0.0.1" || name == here ||
           short_name(name) == short_name(here);
  });
  return silent;
}

std::string format_ranks(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(ranks[i]);
    if (last > i) text.append("-").append(std::to_string(ranks[last]));
    i = last + 1;
  }
  return text;
}

Report make_report(const JobOutcome& job) {
  if (job.stop_signal != 0)
    return {128 + job.stop_signal,
            "catena-run: stopped by " + signal_name(job.stop_signal) + "; all ranks were ended\n"};
  if (!job.setup_error.empty()) return {1, "catena-run: " + job.setup_error + "\n"};
  const int first = earliest(job, own_failure_time);
  const std::uint64_t first_time = first >= 0 ? own_failure_time(end_of(job, first)) : 0;
  if (const auto text = describe_silent_host(job, first_time))
    return {1, "catena-run: " + *text + "\n" + describe_others(job, -1)};
  if (const auto culprit = find_culprit(job)) return report_culprit(job, *culprit);
  if (const auto text = describe_lost_host(job))
    return {1, "catena-run: " + *text + "\n" + describe_others(job, -1)};
  if (const int victim = first_victim(job); victim >= 0) return report_unknown(job, victim);
  if (job.standstill) return {1, "catena-run: " + job.standstill->reason + "\n"};
  const bool all_ended = std::all_of(job.ranks.begin(), job.ranks.end(),
                                     [](const RankOutcome& rank) { return rank.end.has_value(); });
  if (job.mpirun_status == 0 && all_ended) return {};
  return report_mpirun_failure(job);
}

}  // namespace catena::launch
