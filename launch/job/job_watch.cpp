#include "job/job_watch.h"

#include "job/rank_state.h"

namespace catena::launch {
namespace {

using comm::StatusBoard;

// How long the starter may take to hand on the end of a rank process, or to end the job because of
// it.
constexpr double kStarterDelay = 6;
// Rank processes say every second that they are there; this is longer than most delays.
constexpr double kReportPause = 1.5;
// Checks come once a second. After a longer pause this process itself was stopped.
constexpr double kPause = 3;

bool is_stopped(char state) { return state == 'T' || state == 't'; }

// Since when something has been so, 0 when it is not.
double since(std::map<int, double>& times, int rank, bool is_so, double now) {
  if (!is_so) return times.erase(rank), now;
  return times.emplace(rank, now).first->second;
}

}  // namespace

void JobWatch::note_heard(const std::string& host, bool sign_of_life, double now) {
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
    if (!rank.start || rank.end || rank.start->host == here_) continue;
    const auto heard = heard_.find(rank.start->host);
    if (heard != heard_.end() && now - heard->second > kReportPause)
      silences[heard->first] = now - heard->second;
  }
  return silences;
}

void JobWatch::note_operations(std::vector<RankOutcome>& ranks, const StatusBoard* board,
                               const std::string& here) {
  for (RankOutcome& rank : ranks) {
    if (!board || !rank.start || rank.end || rank.start->host != here) continue;
    if (rank.start->local_rank >= board->slots()) continue;
    const comm::SlotSnapshot slot = board->read(rank.start->local_rank);
    rank.operation_then = slot.operation;
    if (slot.operation.empty() && !slot.last_call.empty())
      rank.operation_then = "after " + slot.last_call;
  }
}

Hang JobWatch::describe_starter(int starter, double seconds) {
  return {.seconds = seconds,
          .starter = starter,
          .starter_stopped = is_stopped(comm::process_state(starter))};
}

std::optional<Hang> JobWatch::find_stopped_starter(int starter, const std::string& operation) {
  Hang hang = describe_starter(starter, 0);
  if (!hang.starter_stopped) return std::nullopt;
  hang.kind = Hang::Kind::starter_keeps_rank;
  hang.operation = operation;
  return hang;
}

std::optional<Hang> JobWatch::check_rank(const RankOutcome& rank, const StatusBoard* board,
                                         int starter, double now) {
  Hang hang;
  hang.rank = rank.start->rank;
  hang.starter = starter;
  const char state = state_of(*rank.start);
  hang.seconds = now - since(gone_, hang.rank, has_ended(state), now);
  if (hang.seconds > kStarterDelay) {
    hang.kind = Hang::Kind::starter_keeps_end;
    hang.starter_stopped = is_stopped(comm::process_state(starter));
    return hang;
  }
  hang.seconds = now - since(stopped_, hang.rank, is_stopped(state), now);
  if (hang.seconds > timeout_ + comm::kOutsideMargin) {
    hang.kind = Hang::Kind::rank_process_stopped;
    return hang;
  }
  if (!board || rank.start->local_rank >= board->slots()) return std::nullopt;
  hang.kind = Hang::Kind::rank_in_library;
  hang.operation = comm::describe_stuck(board->read(rank.start->local_rank), comm::monotonic_ns(),
                                        comm::kOutsideMargin);
  if (hang.operation.empty()) return std::nullopt;
  return find_stopped_starter(starter, hang.operation).value_or(hang);
}

std::optional<Hang> JobWatch::check_hosts(const std::vector<RankOutcome>& ranks, int starter,
                                          double now) const {
  for (const auto& [host, silence] : silences(ranks, now)) {
    if (silence < timeout_ + comm::kOutsideMargin) continue;
    Hang hang = describe_starter(starter, silence);
    hang.kind = hang.starter_stopped ? Hang::Kind::starter_silent : Hang::Kind::host_silent;
    if (!hang.starter_stopped) hang.host = host;
    return hang;
  }
  return std::nullopt;
}

std::optional<Hang> JobWatch::check(const std::vector<RankOutcome>& ranks, const StatusBoard* board,
                                    int starter, double now) {
  if (last_check_ != 0 && now - last_check_ > kPause) forget_silence(now);
  last_check_ = now;
  // A host that is gone makes ranks of this one stuck, so it comes first.
  if (auto hang = check_hosts(ranks, starter, now)) return hang;
  for (const RankOutcome& rank : ranks) {
    if (!rank.start || rank.end || rank.start->host != here_) continue;
    if (auto hang = check_rank(rank, board, starter, now)) return hang;
  }
  return std::nullopt;
}

}  // namespace catena::launch
