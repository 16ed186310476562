#include "job/report.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <map>

#include "base/process.h"
#include "base/text.h"
#include "catena/core/printable.h"
#include "job/report_hosts.h"

namespace catena::launch {
namespace {

using Ending = Verdict::Ending;
using Cause = Verdict::Cause;

std::string way_of_ending(const EndReport& end) {
  if (end.signal != 0) return signal_name(end.signal) + (end.core_dumped ? ", core dumped" : "");
  return "exit code " + std::to_string(end.exit_code);
}

std::string host_of(const JobOutcome& job, int rank) {
  const RankOutcome& outcome = outcome_of(job, rank);
  if (outcome.start) return outcome.start->host;
  if (outcome.end) return outcome.end->host;
  return job.findings.killed_host.empty() ? "an unknown host" : job.findings.killed_host;
}

std::string operation_of(const RankOutcome& outcome) {
  if (!outcome.operation_then.empty()) return outcome.operation_then;
  if (!outcome.end) return outcome.start ? "unknown" : "not started";
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

std::string quoted(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text.append("    ").append(line).append("\n");
  return text;
}

std::string last_lines(const std::string& text) {
  constexpr std::size_t kMostLines = 8;
  std::vector<std::string> lines = split(trim(text), '\n');
  std::erase_if(lines, [](const std::string& line) { return line.empty() || is_backtrace(line); });
  if (lines.size() > kMostLines)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kMostLines));
  return quoted(lines);
}

// The starter's own words, and what MPI says through it, may hold the only cause there is.
std::string describe_words(const JobOutcome& job) {
  if (job.words.empty()) return "";
  return "  " + job.terms.name + " said:\n" + quoted(job.words.lines());
}

// `said`: how it ended is known already.
std::string describe_end(const EndReport& end, bool said) {
  std::string text;
  const bool by_itself = !end.not_started && end.stop_time == 0 && failed(end);
  if (by_itself && !said) text += "  it ended with " + way_of_ending(end) + "\n";
  if (!end.operation.empty()) text += "  it was doing: " + end.operation + "\n";
  if (!end.last_call.empty() && !end.operation.starts_with(end.last_call))
    text += "  its last collective: " + end.last_call + "\n";
  if (const std::string lines = last_lines(end.last_lines); !lines.empty())
    text += "  the end of its standard error:\n" + lines;
  return text;
}

// Whatever the error's own text looks like.
std::string one_line(const std::string& error) {
  std::string line = error;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string whole(double seconds) { return std::to_string(std::lround(seconds)) + " s"; }

std::string describe_starter(const Hang& hang, const std::string& name) {
  return name + " (process " + std::to_string(hang.starter) + ")" +
         (hang.starter_stopped ? ", which is stopped (SIGSTOP)," : ", which still runs,");
}

// How the rank of the verdict failed.
std::string describe_cause(const JobOutcome& job, const Verdict& verdict) {
  switch (verdict.cause) {
    case Cause::ended: return way_of_ending(*outcome_of(job, verdict.rank).end);
    case Cause::error: return outcome_of(job, verdict.rank).end->error;
    case Cause::aborted:
      return "MPI_Abort with error code " + std::to_string(job.findings.abort_code);
    case Cause::asked:
      return "was asked to end by " + signal_name(outcome_of(job, verdict.rank).end->stop_signal) +
             ", not by catena-run";
    case Cause::killed: return signal_name(job.findings.killed_signal);
    case Cause::hung: return describe_hang(*job.hang, job.terms);
    case Cause::noticed: break;
  }
  const std::string error = outcome_of(job, verdict.noticed_by).end->peer_error;
  if (verdict.noticed_by == verdict.rank) return error;
  return error + " (noticed by rank " + std::to_string(verdict.noticed_by) + ")";
}

// Open MPI 4.1 under Slurm's pmix does this without a fault of the program (srun_starter.cpp).
std::string advise_new_start(const JobOutcome& job, const EndReport& end) {
  const bool in_mpi_init = end.signal == SIGSEGV && end.phase == comm::Phase::joining;
  if (job.terms.name != "srun" || !in_mpi_init) return "";
  return "  Open MPI 4.1 ends so in MPI_Init now and then when Slurm starts it: start the job "
         "again; "
         "if it always ends so, the fault is another one\n";
}

std::string rank_and_host(const JobOutcome& job, int rank) {
  return "rank " + std::to_string(rank) + " on " + host_of(job, rank);
}

std::string report_culprit(const JobOutcome& job, const Verdict& verdict) {
  const RankOutcome& outcome = outcome_of(job, verdict.rank);
  std::string text = "catena-run: " + rank_and_host(job, verdict.rank) +
                     (verdict.cause == Cause::asked ? " " : " failed first: ") +
                     one_line(describe_cause(job, verdict)) + "\n";
  if (outcome.end) {
    const bool said = verdict.cause == Cause::ended ||
                      (verdict.cause == Cause::killed && !outcome.end->core_dumped &&
                       outcome.end->signal == job.findings.killed_signal);
    text += describe_end(*outcome.end, said);
    text += advise_new_start(job, *outcome.end);
    text += describe_transports(job);
    if (verdict.cause == Cause::ended && outcome.end->last_lines.empty())
      text += describe_words(job);
  } else if (!outcome.operation_then.empty()) {
    text += "  it was doing: " + outcome.operation_then + "\n";
  }
  text += describe_others(job, verdict.rank);
  text += describe_network(job);
  if (outcome.start && !outcome.start->log.empty()) text += "  log: " + outcome.start->log + "\n";
  return text;
}

std::string ending_of_starter(const JobOutcome& job) {
  const std::string how = job.starter_code < 0
                              ? " was ended by " + signal_name(-job.starter_code)
                              : " ended with exit code " + std::to_string(job.starter_code);
  return job.terms.name + how + " and no rank reported a failure\n";
}

std::string report_unknown(const JobOutcome& job, const Verdict& verdict) {
  const std::string noticed = one_line(outcome_of(job, verdict.noticed_by).end->peer_error);
  return "catena-run: no rank is known to be at fault: " + noticed + " (noticed by " +
         rank_and_host(job, verdict.noticed_by) + ")\n" + describe_others(job, -1) +
         describe_transports(job) + describe_network(job);
}

std::string report_unaccounted_host(const JobOutcome& job, const Verdict& verdict) {
  std::string text = "catena-run: " + describe_unaccounted_host(job, verdict.host) + "\n  ";
  if (verdict.noticed_by < 0)
    text += ending_of_starter(job);
  else
    text += "noticed by " + rank_and_host(job, verdict.noticed_by) + ": " +
            one_line(outcome_of(job, verdict.noticed_by).end->peer_error) + "\n";
  return text + describe_others(job, -1) + describe_network(job);
}

std::string report_starter_failure(const JobOutcome& job, const Verdict& verdict) {
  const std::string ended = ending_of_starter(job);
  std::string text = verdict.ending == Ending::hosts_unreached
                         ? "catena-run: " + describe_unreached(job, verdict.hosts, ended)
                         : job.withheld + "catena-run: " + ended;
  if (verdict.ending != Ending::hosts_unreached && job.findings.no_connection)
    text += "  " + job.terms.no_connection + "\n";
  text += describe_transports(job);
  if (verdict.ending != Ending::hosts_unreached || job.findings.unreached_reason.empty())
    text += describe_words(job);
  const auto missing = ranks_not_started(job);
  if (!missing.empty()) text += "  never started: ranks " + format_ranks(missing) + "\n";
  const auto silent =
      ranks_where(job, [](const RankOutcome& rank) { return rank.start && !rank.end; });
  if (!silent.empty()) text += "  ended without a report: ranks " + format_ranks(silent) + "\n";
  return text;
}

std::string describe_given_up(const JobOutcome& job) {
  const GivenUp& given_up = *job.given_up;
  switch (given_up.why) {
    case GivenUp::Why::ranks_missing: return describe_missing(job);
    case GivenUp::Why::world_size:
      return job.terms.name + " started a world of " + std::to_string(given_up.world_size) +
             " ranks where " + std::to_string(job.ranks.size()) +
             " were asked for; check -n, the hosts and the batch system's allocation";
    case GivenUp::Why::files_differ: return describe_difference(given_up.difference);
    case GivenUp::Why::output_failed: break;
  }
  return std::string("standard output cannot be written: ") + std::strerror(given_up.error);
}

std::string describe_stayed(const Hang& hang, const StarterTerms& terms) {
  return "all ranks ended well; " + describe_starter(hang, terms.name) + " did not end within " +
         whole(hang.seconds) + " of them and was killed";
}

std::string text_of(const JobOutcome& job, const Verdict& verdict) {
  const auto line = [](const std::string& text) { return "catena-run: " + text + "\n"; };
  switch (verdict.ending) {
    case Ending::well: return job.stayed ? line(describe_stayed(*job.stayed, job.terms)) : "";
    case Ending::stopped:
      return line("stopped by " + signal_name(job.stop_signal) + "; all ranks were ended");
    case Ending::given_up:
      return line(describe_given_up(job)) +
             (job.given_up->why == GivenUp::Why::ranks_missing ? describe_words(job) : "");
    case Ending::host_silent:
      return line(describe_silent_host(job, verdict.host, whole(verdict.seconds))) +
             describe_others(job, -1);
    case Ending::rank_failed: return report_culprit(job, verdict);
    case Ending::host_lost:
      return line(describe_lost_host(job, verdict.host)) + describe_others(job, -1);
    case Ending::culprit_unknown: return report_unknown(job, verdict);
    case Ending::host_unaccounted: return report_unaccounted_host(job, verdict);
    case Ending::starter_stopped:
      if (!job.findings.ended_for.empty())
        return line("Slurm ended all ranks: " + job.findings.ended_for) + describe_others(job, -1);
      return line(job.terms.name +
                  " was asked to stop by a signal (such as SIGTERM, SIGINT or SIGHUP), not by "
                  "catena-run; it ended all ranks");
    case Ending::starter_hung: return line(describe_hang(*job.hang, job.terms));
    case Ending::launcher_missing: return line(describe_missing_launcher(job, verdict.host));
    case Ending::hosts_unreached:
    case Ending::starter_killed:
    case Ending::starter_failed: return report_starter_failure(job, verdict);
  }
  return "";
}

}  // namespace

std::string describe_hang(const Hang& hang, const StarterTerms& terms) {
  const std::string starter = describe_starter(hang, terms.name), time = whole(hang.seconds);
  switch (hang.kind) {
    case Hang::Kind::rank_in_library: return hang.operation;
    case Hang::Kind::rank_process_stopped:
      return "catena-run's own process of this rank has been stopped (SIGSTOP) for " + time;
    case Hang::Kind::host_silent: return "nothing was heard of it for " + time;
    case Hang::Kind::starter_silent:
      return starter + " does not answer: nothing came through it for " + time;
    case Hang::Kind::starter_keeps_rank: return starter + " does not answer: " + hang.operation;
    case Hang::Kind::starter_keeps_end: break;
  }
  return starter + " does not answer: the process of rank " + std::to_string(hang.rank) +
         " ended " + time + " ago and " + terms.name + " has not said so";
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

std::string name_ranks(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_ranks(ranks);
}

Report make_report(const JobOutcome& job) {
  const Verdict verdict = judge(job);
  return {verdict.exit_code, printable(text_of(job, verdict))};
}

}  // namespace catena::launch
