#include "job/verdict.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "base/text.h"

namespace catena::launch {
namespace {

using Ending = Verdict::Ending;
using Cause = Verdict::Cause;

// Whether the launcher made it end, perhaps before it came to an exit code of its own.
bool ended_by_launcher(const EndReport& end) {
  return end.stop_signal == 0 && end.stop_time != 0 &&
         (end.signal == SIGTERM || end.signal == SIGKILL);
}

int exit_code_of(const EndReport& end) {
  if (end.stop_signal != 0) return 128 + end.stop_signal;
  if (ended_by_launcher(end)) return 1;
  const int code = end.signal != 0 ? 128 + end.signal : end.exit_code;
  return code == 0 ? 1 : code;
}

// When the rank failed of its own accord; 0 when it did not. A rank that was already failing when
// it was asked to end counts; one that ended because catena-run or the starter asked does not.
std::uint64_t own_failure_time(const EndReport& end) {
  const bool before_stop = end.stop_time == 0 || end.error_time < end.stop_time;
  const bool has_error = !end.error.empty() && end.error_time != 0 && before_stop && failed(end);
  const bool has_peer_error = !end.peer_error.empty();
  if (has_error && (!has_peer_error || end.error_time <= end.peer_error_time))
    return end.error_time;
  const bool asked_first = !has_peer_error || end.stop_time < end.peer_error_time;
  if (end.stop_signal != 0 && asked_first) return end.stop_time;
  if (has_peer_error || end.stop_time != 0 || !failed(end)) return 0;
  return end.end_time;
}

// When a rank that seems to have ended well noted its error: exit(256) is a failure to its exit
// handlers, which do not wait for the others, while the system keeps 0 of it. Of consequence only
// if the starter then ended the others: a program may note an error and get over it.
std::uint64_t hidden_failure_time(const EndReport& end) {
  const bool own = !end.error.empty() && end.peer_error.empty() && end.stop_time == 0;
  return own && !failed(end) ? end.error_time : 0;
}

std::uint64_t victim_time(const EndReport& end) {
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

const EndReport& end_of(const JobOutcome& job, int rank) { return *outcome_of(job, rank).end; }

bool is_rank(const JobOutcome& job, int rank) {
  return rank >= 0 && rank < static_cast<int>(job.ranks.size());
}

bool is_victim(const JobOutcome& job, int rank) {
  const auto& end = outcome_of(job, rank).end;
  return end && victim_time(*end) != 0;
}

// The rank that noticed first, of those that name a culprit if there are any.
int first_victim(const JobOutcome& job) {
  const int knowing = earliest(job, [](const EndReport& end) {
    return end.culprit_rank >= 0 && end.culprit_rank != end.rank ? victim_time(end) : 0;
  });
  return knowing >= 0 ? knowing : earliest(job, victim_time);
}

// Rank processes report every second. A host that was silent for this long until the end of the job
// is considered lost if at least one report was missing when the first rank failed.
constexpr double kChance = 2.9, kMissingReport = 1.5;

// The host that had been silent longest, and before the first failure.
std::string longest_silent(const JobOutcome& job, std::uint64_t first_failure) {
  std::string host;
  double longest = kChance;
  for (const auto& [name, seconds] : job.silences) {
    const double heard = static_cast<double>(job.silences_time) - seconds * 1e9;
    const bool after =
        first_failure != 0 && heard + kMissingReport * 1e9 > static_cast<double>(first_failure);
    if (seconds < longest || after) continue;
    host = name;
    longest = seconds;
  }
  return host;
}

// A host none of whose ranks said how it ended.
std::string unaccounted_host(const JobOutcome& job) {
  std::map<std::string, bool> silent;
  for (const RankOutcome& rank : job.ranks) {
    if (!rank.start || rank.start->host == host_name()) continue;
    silent.emplace(rank.start->host, true).first->second &= !rank.end.has_value();
  }
  std::erase_if(silent, [](const auto& entry) { return !entry.second; });
  return silent.size() == 1 ? silent.begin()->first : "";
}

// The other host that stopped answering before anything else went wrong; `first_failure` is when a
// rank failed of its own accord (wall clock, ns; 0: none did).
std::optional<Verdict> judge_silence(const JobOutcome& job, std::uint64_t first_failure) {
  const auto silent = [](const std::string& host, double seconds) {
    return Verdict{.ending = Ending::host_silent, .exit_code = 1, .host = host, .seconds = seconds};
  };
  if (job.hang && job.hang->kind == Hang::Kind::host_silent)
    return silent(job.hang->host, job.hang->seconds);
  const std::string host = longest_silent(job, first_failure);
  if (host.empty()) return std::nullopt;
  return silent(host, job.silences.at(host));
}

// The host whose daemon ended, or whose connection did, in the middle of the job; "": none.
std::string lost_host(const JobOutcome& job) {
  if (job.starter_code == 0) return "";
  return job.findings.lost_host.empty() && job.findings.daemons_failed ? unaccounted_host(job)
                                                                       : job.findings.lost_host;
}

// The only host that fell silent and none of whose ranks said how it ended; "": there is none.
std::string silent_unaccounted_host(const JobOutcome& job) {
  const std::string host = unaccounted_host(job);
  const auto silence = job.final_silences.find(host);
  return silence == job.final_silences.end() || silence->second < kMissingReport ? "" : host;
}

Verdict ended(Ending ending, int exit_code, const std::string& host = "") {
  return {.ending = ending, .exit_code = exit_code, .host = host};
}

Verdict rank_failed(int rank, Cause cause, int exit_code) {
  return {.ending = Ending::rank_failed, .exit_code = exit_code, .rank = rank, .cause = cause};
}

Verdict judge_own_failure(const JobOutcome& job, int rank) {
  const EndReport& end = end_of(job, rank);
  // Slurm may kill the rank before it comes to its exit code.
  const bool killed = end.signal == SIGKILL || end.signal == SIGTERM;
  const bool aborted =
      job.findings.abort_rank == rank && (killed || end.exit_code == job.findings.abort_code);
  const bool asked = end.stop_signal != 0 && own_failure_time(end) == end.stop_time;
  const Cause cause = asked                ? Cause::asked
                      : !end.error.empty() ? Cause::error
                      : aborted            ? Cause::aborted
                                           : Cause::ended;
  const int abort_code = job.findings.abort_code & 255;
  return rank_failed(
      rank, cause,
      cause == Cause::aborted && killed && abort_code != 0 ? abort_code : exit_code_of(end));
}

// That of the rank that noticed first, or where the launcher ended this one before it came to it,
// of the first that noticed and ended by itself.
int exit_code_of_victims(const JobOutcome& job, int first) {
  if (!ended_by_launcher(end_of(job, first))) return exit_code_of(end_of(job, first));
  const int other = earliest(
      job, [](const EndReport& end) { return ended_by_launcher(end) ? 0 : victim_time(end); });
  return exit_code_of(end_of(job, other < 0 ? first : other));
}

// All that failed did so because of another rank, and some say which it is.
Verdict judge_victim(const JobOutcome& job, int victim) {
  Verdict verdict = rank_failed(end_of(job, victim).culprit_rank, Cause::noticed,
                                exit_code_of_victims(job, victim));
  verdict.noticed_by = victim;
  if (verdict.rank == victim) return verdict;
  const auto& culprit = outcome_of(job, verdict.rank).end;
  // One that the stop found on its way out keeps its own code.
  if (culprit && failed(*culprit) && (culprit->stop_time == 0 || culprit->signal == 0))
    verdict.exit_code = exit_code_of(*culprit);
  return verdict;
}

// Whether a rank that noticed a failure says that it was the failure of `rank`.
bool is_named(const JobOutcome& job, int rank) {
  return std::any_of(job.ranks.begin(), job.ranks.end(), [&](const RankOutcome& other) {
    return other.end && !other.end->peer_error.empty() && other.end->culprit_rank == rank;
  });
}

// Whether the starter named a rank, and that is another one.
bool is_other(const JobOutcome& job, const std::optional<int>& named, int rank) {
  return named && is_rank(job, *named) && *named != rank;
}

// MPI_Abort of another rank makes Slurm kill all tasks. So it was with `rank`, which SIGKILL ended,
// unless somebody says that the abort was for its sake.
bool killed_for_abort(const JobOutcome& job, int rank) {
  const auto& aborted = job.findings.abort_rank;
  return is_other(job, aborted, rank) && !is_victim(job, *aborted) && !is_named(job, rank);
}

// srun ends programs and rank processes one after the other. A rank whose program ended before its
// rank process had heard seems to have failed by itself; the starter knows who did.
bool ended_with_the_step(const JobOutcome& job, int rank) {
  const EndReport& end = end_of(job, rank);
  if (end.stop_time != 0 || !end.error.empty()) return false;
  if (end.signal == SIGKILL) return killed_for_abort(job, rank);
  const auto& killed = job.findings.killed_rank;
  if (end.signal != SIGTERM) return false;
  return is_other(job, job.findings.abort_rank, rank) ||
         (is_other(job, killed, rank) && !outcome_of(job, *killed).end);
}

// Whether a signal ended a rank process, as the starter says. SIGALRM is the launcher's own word
// for "stop", received before the rank process was ready.
bool rank_process_was_killed(const JobOutcome& job) {
  const StarterFindings& findings = job.findings;
  if (!findings.killed_rank || !is_rank(job, *findings.killed_rank)) return false;
  if (findings.killed_signal == SIGKILL) return !killed_for_abort(job, *findings.killed_rank);
  return findings.killed_signal != SIGALRM;
}

std::optional<Verdict> find_culprit(const JobOutcome& job) {
  const int first = earliest(job, own_failure_time);
  if (first >= 0 && !ended_with_the_step(job, first)) return judge_own_failure(job, first);
  const StarterFindings& findings = job.findings;
  if (rank_process_was_killed(job))
    return rank_failed(*findings.killed_rank, Cause::killed, 128 + findings.killed_signal);
  if (!lost_host(job).empty()) return std::nullopt;
  if (job.hang && is_rank(job, job.hang->culprit()))
    return rank_failed(job.hang->culprit(), Cause::hung, 1);
  const int victim = first_victim(job);
  const int named = victim >= 0 ? end_of(job, victim).culprit_rank : -1;
  // A rank that noticed another one's failure may leave by MPI_Abort, which says nothing new.
  // mpirun may have killed its process before it could say what it had noticed, but others did.
  if (findings.abort_rank && is_rank(job, *findings.abort_rank) &&
      !is_victim(job, *findings.abort_rank) &&
      (outcome_of(job, *findings.abort_rank).end || !is_rank(job, named) ||
       named == *findings.abort_rank))
    return rank_failed(*findings.abort_rank, Cause::aborted,
                       findings.abort_code == 0 ? 1 : findings.abort_code & 255);
  if (is_rank(job, named)) return judge_victim(job, victim);
  const int hidden = job.ended_by_starter ? earliest(job, hidden_failure_time) : -1;
  if (hidden >= 0) return rank_failed(hidden, Cause::error, exit_code_of(end_of(job, hidden)));
  return std::nullopt;
}

// Ranks saw that others did not come, and nobody knows whose fault it is: not that of the rank that
// noticed first.
Verdict judge_unknown(const JobOutcome& job, int victim) {
  const std::string host = silent_unaccounted_host(job);
  const bool named = !host.empty();
  return {.ending = named ? Ending::host_unaccounted : Ending::culprit_unknown,
          .exit_code = named ? 1 : exit_code_of_victims(job, victim),
          .noticed_by = victim,
          .host = host};
}

// Where the job has failed, whatever the starter says.
int exit_code_of_starter(const JobOutcome& job) {
  if (job.starter_code < 0) return 128 - job.starter_code;
  return job.starter_code == 0 ? 1 : job.starter_code;
}

Verdict judge_starter(const JobOutcome& job) {
  if (const std::string& host = job.findings.broken_host; !host.empty())
    return ended(Ending::launcher_missing, 127, host);
  // The exit codes of a mpirun that misses a host are a matter of chance.
  if (auto hosts = silent_hosts(job); !hosts.empty())
    return {.ending = Ending::hosts_unreached, .exit_code = 1, .hosts = std::move(hosts)};
  if (job.starter_code < 0) return ended(Ending::starter_killed, 1);
  return ended(Ending::starter_failed, exit_code_of_starter(job));
}

// It kills programs and rank processes one after the other, so that some of these can still report.
// `first`: the rank that failed of its own accord, -1: none.
bool is_ended_by_batch_system(const JobOutcome& job, int first) {
  const StarterFindings& findings = job.findings;
  const int signal = first >= 0 ? end_of(job, first).signal : SIGKILL;
  const bool was_ended = signal == SIGKILL || signal == SIGTERM;
  return !findings.ended_for.empty() && !findings.abort_rank && was_ended;
}

}  // namespace

std::vector<std::string> silent_hosts(const JobOutcome& job) {
  const auto add = [](std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  std::vector<std::string> heard, silent;
  const std::size_t known = std::min(job.planned_hosts.size(), job.ranks.size());
  for (std::size_t rank = 0; rank < known; ++rank)
    if (job.ranks[rank].start) add(heard, job.planned_hosts[rank]);
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

Verdict judge(const JobOutcome& job) {
  if (job.stop_signal != 0) return ended(Ending::stopped, 128 + job.stop_signal);
  if (job.given_up) return ended(Ending::given_up, 1);
  const int first = earliest(job, own_failure_time);
  const std::uint64_t first_time = first >= 0 ? own_failure_time(end_of(job, first)) : 0;
  if (is_ended_by_batch_system(job, first))
    return ended(Ending::starter_stopped, exit_code_of_starter(job));
  if (const auto silence = judge_silence(job, first_time)) return *silence;
  if (const auto culprit = find_culprit(job)) return *culprit;
  if (const std::string host = lost_host(job); !host.empty())
    return ended(Ending::host_lost, 1, host);
  // Ranks that see others not come may all be waiting for it.
  if (job.hang && job.hang->starter_stopped) return ended(Ending::starter_hung, 1);
  if (const int victim = first_victim(job); victim >= 0) return judge_unknown(job, victim);
  if (job.hang) return ended(Ending::starter_hung, 1);
  // mpirun ends the ranks and then itself when it gets SIGTERM, SIGINT or SIGHUP.
  if (job.ended_by_starter && job.starter_code >= 0 && job.starter_code < 128)
    return ended(Ending::starter_stopped, exit_code_of_starter(job));
  if (job.starter_code == 0 && all_ended(job)) return {};
  // The starter may have noticed that a host is gone before any rank did, without a word.
  const std::string silent = silent_unaccounted_host(job);
  return silent.empty() ? judge_starter(job) : ended(Ending::host_unaccounted, 1, silent);
}

}  // namespace catena::launch
