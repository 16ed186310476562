#include "job/report_hosts.h"

#include <algorithm>

#include "base/text.h"
#include "job/report.h"

namespace catena::launch {
namespace {

bool is_same_host(const std::string& a, const std::string& b) {
  return a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

std::vector<int> ranks_on(const JobOutcome& job, const std::string& host) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const bool planned = rank < job.planned_hosts.size() && job.planned_hosts[rank] == host;
    const auto& start = job.ranks[rank].start;
    if (planned || (start && is_same_host(start->host, host)))
      ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// By an exit code, as Open MPI ends programs in MPI_Init, and without a word of the program. Where
// /dev/shm has no room even for the status board, nobody knows how far the program came.
bool failed_while_joining(const RankOutcome& rank) {
  if (!rank.end || rank.end->exit_code == 0 || !failed_unasked(*rank.end)) return false;
  const bool no_board = rank.end->phase == comm::Phase::empty && !rank.end->shared_memory.empty();
  return (no_board || rank.end->phase == comm::Phase::joining) && rank.end->error.empty() &&
         rank.end->peer_error.empty();
}

std::string describe_shared_memory(const JobOutcome& job) {
  for (const RankOutcome& rank : job.ranks)
    if (rank.end && !rank.end->shared_memory.empty())
      return "  on " + rank.end->host + ", " + rank.end->shared_memory + "\n";
  return "";
}

}  // namespace

std::string name_host(const JobOutcome& job, const std::string& host) {
  const std::vector<int> ranks = ranks_on(job, host);
  if (ranks.empty()) return "host " + host;
  return "host " + host + (ranks.size() > 1 ? " (ranks " : " (rank ") + format_ranks(ranks) + ")";
}

std::string describe_silent_host(const JobOutcome& job, const std::string& host,
                                 const std::string& time) {
  return name_host(job, host) + " does not answer: nothing was heard of it for " + time +
         "; it is frozen or cut off, or its " + job.terms.daemon + " is";
}

std::string describe_lost_host(const JobOutcome& job, const std::string& host) {
  return name_host(job, host) + " was lost: the " + job.terms.daemon +
         " there has ended, or the connection to it (" + job.terms.connection + ") has";
}

std::string describe_unaccounted_host(const JobOutcome& job, const std::string& host) {
  return name_host(job, host) +
         " does not answer: no word came of how its ranks ended; it is frozen or cut off";
}

std::string describe_missing_launcher(const JobOutcome& job, const std::string& host) {
  return name_host(job, host) +
         " cannot start catena-run: it is missing there, or is not an executable file; "
         "every host needs it in the same place";
}

std::string describe_missing(const JobOutcome& job) {
  const GivenUp& given_up = *job.given_up;
  const std::string hosts =
      given_up.silent.empty() ? "" : " (of " + join(given_up.silent, ", ") + ")";
  const std::string text = "ranks " + format_ranks(given_up.missing) + " of " +
                           std::to_string(job.ranks.size()) + hosts + " did not start within " +
                           format_seconds(job.start_timeout) + " s; check that the hosts " +
                           job.terms.host_duty +
                           " and have catena-run in the same place, or raise --start-timeout";
  return job.network.empty() ? text : text + "; network: " + job.network;
}

std::string describe_unreached(const JobOutcome& job, const std::vector<std::string>& hosts,
                               const std::string& ended) {
  const StarterFindings& findings = job.findings;
  const StarterTerms& terms = job.terms;
  const bool named = std::find(hosts.begin(), hosts.end(), findings.unreached_host) != hosts.end();
  const bool several = !named && hosts.size() > 1;
  const std::string host = named ? findings.unreached_host : hosts.front();
  std::string text = several ? "hosts " : "host ";
  text += named ? host : join(hosts, ", ");
  if (findings.no_connection)
    text += " cannot be reached: " + terms.no_connection + "\n";
  else if (!findings.unreached_reason.empty())
    text += " could not be reached: " + findings.unreached_reason + "\n";
  else
    text += std::string(several ? " have" : " has") + " started no rank\n";
  return text + "  " + ended + "  every host must " + terms.host_duty + " (try: " + terms.try_host +
         shell_quote(host) + terms.try_host_end + ") and have catena-run in the same place\n";
}

std::string describe_difference(const FileDifference& difference) {
  return difference.file + " differs between hosts: " + difference.host + " has " +
         difference.digest + ", " + difference.other_host + " has " + difference.other_digest +
         " (size-hash); copy the same files to all hosts";
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
    return rank.end && rank.end->phase == comm::Phase::joining;
  });
  if (!joining || job.network.empty()) return "";
  return "  network: " + job.network + "\n";
}

std::string describe_transports(const JobOutcome& job) {
  const bool failed = job.findings.mpi_init_failed ||
                      std::any_of(job.ranks.begin(), job.ranks.end(), failed_while_joining);
  if (!failed) return "";
  const std::string memory = describe_shared_memory(job);
  if (job.transports.empty()) return memory;
  return memory + "  set for Open MPI: " + job.transports +
         "; MPI_Init fails where ranks cannot reach each other by what this allows: try without\n";
}

}  // namespace catena::launch
