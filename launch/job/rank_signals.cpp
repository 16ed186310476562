#include "job/rank_signals.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "job/rank_state.h"

namespace catena::launch {

RankSignals::RankSignals(const JobOutcome& job, const Starter& starter, std::string host)
    : job_(job), starter_(starter), host_(std::move(host)) {}

bool RankSignals::is_here(const RankOutcome& rank) const {
  return rank.start && rank.start->host == host_;
}

bool RankSignals::all_here() const {
  return std::all_of(job_.ranks.begin(), job_.ranks.end(),
                     [this](const RankOutcome& rank) { return is_here(rank); });
}

std::vector<int> RankSignals::pids_here() const {
  std::vector<int> pids;
  for (const RankOutcome& rank : job_.ranks)
    if (is_here(rank)) pids.push_back(rank.start->pid);
  return pids;
}

void RankSignals::send_here(int signal) const {
  for (const RankOutcome& rank : job_.ranks)
    if (is_here(rank)) signal_rank(*rank.start, signal);
}

void RankSignals::send_by_starter(pid_t starter, int signal) const {
  if (all_here()) return;
  if (none_started(job_))
    kill(starter, SIGTERM);
  else
    starter_.signal_ranks(starter, step_of(job_), signal);
}

}  // namespace catena::launch
