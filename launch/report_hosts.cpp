#include "report_hosts.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "status/status_board.h"
#include "text.h"

namespace catena::launch {
namespace {

bool is_same_host(const std::string& a, const std::string& b) {
  return a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

std::vector<int> ranks_on(const JobOutcome& job, const std::string& host) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const bool planned = rank < job.planned_hosts.size() && job.planned_hosts[rank] == host;
    const auto& hello = job.ranks[rank].hello;
    if (planned || (hello && is_same_host(hello->host, host)))
      ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// Rank processes say every second that they are there: this long a silence until the end of the job
// is no chance, if at least one word was missing when the first rank failed.
constexpr double kChance = 2.9, kWord = 1.5;

// The host that had been silent longest, and before the first failure.
std::string longest_silent(const JobOutcome& job, std::uint64_t first_failure) {
  std::string host;
  double longest = kChance;
  for (const auto& [name, seconds] : job.silences) {
    const double heard = static_cast<double>(job.silences_time) - seconds * 1e9;
    const bool after =
        first_failure != 0 && heard + kWord * 1e9 > static_cast<double>(first_failure);
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
    if (!rank.hello || rank.hello->host == host_name()) continue;
    silent.emplace(rank.hello->host, true).first->second &= !rank.end.has_value();
  }
  std::erase_if(silent, [](const auto& entry) { return !entry.second; });
  return silent.size() == 1 ? silent.begin()->first : "";
}

}  // namespace

std::string name_host(const JobOutcome& job, const std::string& host) {
  const std::vector<int> ranks = ranks_on(job, host);
  if (ranks.empty()) return "host " + host;
  return "host " + host + (ranks.size() > 1 ? " (ranks " : " (rank ") + format_ranks(ranks) + ")";
}

std::optional<std::string> describe_silent_host(const JobOutcome& job,
                                                std::uint64_t first_failure) {
  constexpr const char* kWhy = "; it is frozen or cut off, or its daemon of Open MPI is";
  if (job.standstill && !job.standstill->host.empty())
    return name_host(job, job.standstill->host) + " does not answer: " + job.standstill->reason +
           kWhy;
  const std::string host = longest_silent(job, first_failure);
  if (host.empty()) return std::nullopt;
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.0f s", job.silences.at(host));
  return name_host(job, host) + " does not answer: nothing was heard of it for " + seconds + kWhy;
}

std::optional<std::string> describe_lost_host(const JobOutcome& job) {
  if (job.mpirun_status == 0) return std::nullopt;
  const std::string host = job.hints.lost_host.empty() && job.hints.daemons_failed
                               ? unaccounted_host(job)
                               : job.hints.lost_host;
  if (host.empty()) return std::nullopt;
  return name_host(job, host) +
         " was lost: the daemon of Open MPI there has ended, or the connection to it (ssh) has";
}

std::optional<std::string> describe_unaccounted_host(const JobOutcome& job) {
  const std::string host = unaccounted_host(job);
  const auto silence = job.final_silences.find(host);
  if (silence == job.final_silences.end() || silence->second < kWord) return std::nullopt;
  return name_host(job, host) +
         " does not answer: no word came of how its ranks ended; it is frozen or cut off";
}

std::string describe_missing(const JobOutcome& job, double start_timeout) {
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank)
    if (!job.ranks[rank].hello) missing.push_back(static_cast<int>(rank));
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%g", start_timeout);
  const std::vector<std::string> hosts = silent_hosts(job);
  std::string text = "ranks " + format_ranks(missing) + " of " + std::to_string(job.ranks.size()) +
                     (hosts.empty() ? "" : " (of " + join(hosts, ", ") + ")") +
                     " did not start within " + seconds +
                     " s; check that the hosts answer to ssh without a password and have "
                     "catena-run in the same place, or raise --start-timeout";
  return job.network.empty() ? text : text + "; network: " + job.network;
}

std::string describe_logs(const JobOutcome& job) {
  std::string text;
  for (const RankOutcome& rank : job.ranks)
    if (rank.end && !rank.end->log_problem.empty())
      text += "catena-run: rank " + std::to_string(rank.end->rank) + " on " + rank.end->host +
              ": " + rank.end->log_problem + "\n";
  return text;
}

std::string describe_network(const JobOutcome& job) {
  const bool joining = std::any_of(job.ranks.begin(), job.ranks.end(), [](const RankOutcome& rank) {
    return rank.end && rank.end->phase == comm::phase_name(comm::Phase::joining);
  });
  if (!joining || job.network.empty()) return "";
  return "  network: " + job.network + "\n";
}

}  // namespace catena::launch
