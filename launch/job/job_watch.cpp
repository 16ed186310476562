#include "job/job_watch.h"

#include <cmath>

namespace catena::launch {
namespace {

using comm::StatusBoard;

// How long mpirun may take to hand on the end of a rank process, or to end the job because of it.
constexpr double kMpirunDelay = 6;
// Rank processes say every second that they are there; this is longer than most delays.
constexpr double kWord = 1.5;
// Looks come once a second. After a longer pause this process itself was stopped.
constexpr double kPause = 3;

std::string whole(double seconds) { return std::to_string(std::lround(seconds)) + " s"; }

bool is_stopped(char state) { return state == 'T' || state == 't'; }

std::string describe_mpirun(int mpirun) {
  return "mpirun (process " + std::to_string(mpirun) + ")" +
         (is_stopped(comm::process_state(mpirun)) ? ", which is stopped (SIGSTOP),"
                                                  : ", which still runs,");
}

// Since when something has been so, 0 when it is not.
double since(std::map<int, double>& times, int rank, bool is_so, double now) {
  if (!is_so) return times.erase(rank), now;
  return times.emplace(rank, now).first->second;
}

}  // namespace

void JobWatch::heard_of(const std::string& host, bool sign_of_life, double now) {
  if (host != here_ && (sign_of_life || heard_.contains(host))) heard_[host] = now;
}

void JobWatch::forget_silence(double now) {
  for (auto& [host, heard] : heard_) heard = now;
  gone_.clear();
  stopped_.clear();
}

std::map<std::string, double> JobWatch::silences(const std::vector<RankOutcome>& ranks,
                                                 double now) const {
  std::map<std::string, double> silences;
  for (const RankOutcome& rank : ranks) {
    if (!rank.hello || rank.end || rank.hello->host == here_) continue;
    const auto heard = heard_.find(rank.hello->host);
    if (heard != heard_.end() && now - heard->second > kWord)
      silences[heard->first] = now - heard->second;
  }
  return silences;
}

void JobWatch::note_operations(std::vector<RankOutcome>& ranks, const StatusBoard* board,
                               const std::string& here) {
  for (RankOutcome& rank : ranks) {
    if (!board || !rank.hello || rank.end || rank.hello->host != here) continue;
    if (rank.hello->local_rank >= board->slots()) continue;
    const comm::SlotSnapshot slot = board->read(rank.hello->local_rank);
    rank.operation_then = slot.operation;
    if (slot.operation.empty() && !slot.last_call.empty())
      rank.operation_then = "after " + slot.last_call;
  }
}

std::optional<Standstill> JobWatch::look_at_rank(const RankOutcome& rank, const StatusBoard* board,
                                                 int mpirun, double now) {
  const int number = rank.hello->rank;
  const char state = comm::process_state(rank.hello->pid);
  const double gone = now - since(gone_, number, state == '\0' || state == 'Z', now);
  if (gone > kMpirunDelay)
    return Standstill{-1, "",
                      describe_mpirun(mpirun) + " does not answer: the process of rank " +
                          std::to_string(number) + " ended " + whole(gone) +
                          " ago and mpirun has not said so"};
  const double limit = timeout_ + comm::kOutsideMargin;
  const double stopped = now - since(stopped_, number, is_stopped(state), now);
  if (stopped > limit)
    return Standstill{
        number, "",
        "catena-run's own process of this rank has been stopped (SIGSTOP) for " + whole(stopped)};
  if (!board || rank.hello->local_rank >= board->slots()) return std::nullopt;
  const std::string stuck = comm::describe_stuck(board->read(rank.hello->local_rank),
                                                 comm::monotonic_ns(), comm::kOutsideMargin);
  if (stuck.empty()) return std::nullopt;
  return Standstill{number, "", stuck};
}

std::optional<Standstill> JobWatch::look_at_hosts(const std::vector<RankOutcome>& ranks, int mpirun,
                                                  double now) const {
  for (const auto& [host, silence] : silences(ranks, now)) {
    if (silence < timeout_ + comm::kOutsideMargin) continue;
    if (is_stopped(comm::process_state(mpirun)))
      return Standstill{-1, "",
                        describe_mpirun(mpirun) + " does not answer: nothing came through it for " +
                            whole(silence)};
    return Standstill{-1, host, "nothing was heard of it for " + whole(silence)};
  }
  return std::nullopt;
}

std::optional<Standstill> JobWatch::look(const std::vector<RankOutcome>& ranks,
                                         const StatusBoard* board, int mpirun, double now) {
  if (last_look_ != 0 && now - last_look_ > kPause) forget_silence(now);
  last_look_ = now;
  // A host that is gone makes ranks of this one stuck, so it comes first.
  if (auto standstill = look_at_hosts(ranks, mpirun, now)) return standstill;
  for (const RankOutcome& rank : ranks) {
    if (!rank.hello || rank.end || rank.hello->host != here_) continue;
    if (auto standstill = look_at_rank(rank, board, mpirun, now)) return standstill;
  }
  return std::nullopt;
}

}  // namespace catena::launch
