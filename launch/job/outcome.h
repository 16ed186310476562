// Outcome of a job that is over: values, from which the verdict is reached (job/verdict.h) and the
// report is written (job/report.h).
#pragma once

#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/program_digest.h"
#include "starter/starter.h"
#include "wire/rank_report.h"

namespace catena::launch {

struct RankOutcome {
  std::optional<StartReport> start;
  std::optional<EndReport> end;
  // From the status board at the moment of the first failure, when the rank runs on this host.
  std::string operation_then;
};

// The job made no progress in a way that no rank could end, and was ended.
struct Hang {
  enum class Kind {
    rank_in_library,       // `rank` is inside one call of MPI
    rank_process_stopped,  // catena-run's own process of `rank`
    host_silent,           // nothing was heard of `host`
    starter_silent,        // nothing came through the starter
    starter_keeps_end,     // of `rank`, whose process is gone
    starter_keeps_rank     // as rank_in_library, while the starter is stopped
  };
  Kind kind = Kind::starter_silent;
  int rank = -1;
  std::string host = {};
  double seconds = 0;            // for how long
  std::string operation = {};    // of a rank in a library: what the status board says
  int starter = 0;               // process number
  bool starter_stopped = false;  // by SIGSTOP

  // The rank that is at fault, -1: none is.
  int culprit() const {
    return kind == Kind::rank_in_library || kind == Kind::rank_process_stopped ? rank : -1;
  }
};

// Why the launcher itself gave the job up.
struct GivenUp {
  enum class Why { ranks_missing, world_size, files_differ, output_failed };
  Why why = Why::ranks_missing;
  std::vector<int> missing = {};         // ranks that have not started
  std::vector<std::string> silent = {};  // the hosts of which no rank was heard
  int world_size = 0;                    // as the starter made it
  FileDifference difference = {};
  int error = 0;  // errno of writing standard output
};

// What the starter prints itself, as lines that are not blank: their beginning, where a cause is,
// and their end.
class StarterWords {
 public:
  void add(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    lines_.emplace_back(line.substr(0, kLongestLine));
    if (lines_.size() <= kFirst + kLast) return;
    lines_.erase(lines_.begin() + kFirst);
    shortened_ = true;
  }
  bool empty() const { return lines_.empty(); }
  // With "..." for what was left out.
  std::vector<std::string> lines() const {
    std::vector<std::string> all = lines_;
    if (shortened_) all.insert(all.begin() + kFirst, "...");
    return all;
  }

 private:
  static constexpr std::size_t kFirst = 24, kLast = 8, kLongestLine = 400;
  std::vector<std::string> lines_;
  bool shortened_ = false;
};

struct JobOutcome {
  StarterTerms terms;
  std::vector<RankOutcome> ranks;
  int starter_code = 0;  // the starter's exit code, -signal when a signal ended it
  StarterFindings findings;
  std::string withheld;  // what the starter said about the end
  StarterWords words;    // what else it said
  int stop_signal = 0;   // the signal that ended catena-run, 0: none
  // Ranks ended because the starter asked, before catena-run had asked any process to end.
  bool ended_by_starter = false;
  double start_timeout = 60;
  // Where each rank was to run, "" or missing when the starter decides.
  std::vector<std::string> planned_hosts;
  // How long nothing has been heard of other hosts that were silent at the first failure already.
  std::map<std::string, double> silences;
  std::uint64_t silences_time = 0;  // when that was, wall clock, ns
  // And of all other hosts at the end of the job, some of whose ranks did not say how they ended.
  std::map<std::string, double> final_silences;
  std::optional<Hang> hang;
  // The starter, which was killed because it did not end after all ranks had.
  std::optional<Hang> stayed;
  std::optional<GivenUp> given_up;
  std::string network;     // of a job of several hosts: what they use, and how to choose another
  std::string transports;  // the user's settings that choose how MPI connects ranks
};

// A rank that an outsider asked to end has failed the job, however well it ended.
inline bool failed(const EndReport& end) {
  return end.not_started || end.signal != 0 || end.exit_code != 0 || end.stop_signal != 0;
}

// It failed, and nobody had asked it to end. A program that died by a signal which asks may have
// got what was sent to the whole job.
inline bool failed_unasked(const EndReport& end) {
  const bool asked = end.signal == SIGTERM || end.signal == SIGINT || end.signal == SIGHUP;
  return failed(end) && end.stop_time == 0 && !asked;
}

inline const RankOutcome& outcome_of(const JobOutcome& job, int rank) {
  return job.ranks[static_cast<std::size_t>(rank)];
}

template <typename Predicate>
std::vector<int> ranks_where(const JobOutcome& job, Predicate predicate) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank)
    if (predicate(job.ranks[rank])) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

// What the batch system calls the job, as the first rank that has started says; "": none has.
inline std::string step_of(const JobOutcome& job) {
  for (const RankOutcome& rank : job.ranks)
    if (rank.start) return rank.start->step;
  return "";
}

inline std::vector<int> ranks_not_started(const JobOutcome& job) {
  return ranks_where(job, [](const RankOutcome& rank) { return !rank.start; });
}

inline bool all_started(const JobOutcome& job) { return ranks_not_started(job).empty(); }
inline bool all_ended(const JobOutcome& job) {
  return ranks_where(job, [](const RankOutcome& rank) { return !rank.end; }).empty();
}
inline bool none_started(const JobOutcome& job) {
  return ranks_not_started(job).size() == job.ranks.size();
}

}  // namespace catena::launch
