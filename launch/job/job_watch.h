// Notices that a job hangs in a way that no rank of it can end or report by itself: a rank
// that is inside MPI for good, a host or a daemon that is frozen or cut off, a starter that
// does not answer. Ranks have a time limit in their own waits; this is for what has none.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/outcome.h"
#include "status/status_board.h"

namespace catena::launch {

class JobWatch {
 public:
  // `timeout` as --timeout: the ranks' own limit, which is theirs to notice first. `here`: the name
  // of this host.
  JobWatch(double timeout, std::string here) : timeout_(timeout), here_(std::move(here)) {}

  // Something came from a rank of this host. Hosts are watched from their first sign of life on,
  // which only jobs of several hosts have.
  void note_heard(const std::string& host, bool sign_of_life, double now);
  // What came could not be read for a while, so that silence means nothing.
  void forget_silence(double now);

  // To be called about once a second. `board` is that of this host, nullptr: there is none. Empty
  // as long as there is no reason to end the job.
  std::optional<Hang> check(const std::vector<RankOutcome>& ranks, const comm::StatusBoard* board,
                            int starter, double now);

  // The starter, if it is stopped: a rank waits in a library, as `operation` says. It need not be
  // the fault of another rank.
  static std::optional<Hang> find_stopped_starter(int starter, const std::string& operation);
  // The starter, which did not end within `seconds` of the last rank.
  static Hang describe_starter(int starter, double seconds);

  // Writes down what the ranks of this host that have not ended are doing at the moment.
  static void note_operations(std::vector<RankOutcome>& ranks, const comm::StatusBoard* board,
                              const std::string& here);

  // Seconds since the last sign of life of the other hosts that have running ranks and were not
  // heard of when they should have been.
  std::map<std::string, double> silences(const std::vector<RankOutcome>& ranks, double now) const;

 private:
  std::optional<Hang> check_rank(const RankOutcome& rank, const comm::StatusBoard* board,
                                 int starter, double now);
  std::optional<Hang> check_hosts(const std::vector<RankOutcome>& ranks, int starter,
                                  double now) const;

  double timeout_;
  std::string here_;
  double last_check_ = 0;
  std::map<std::string, double> heard_;
  std::map<int, double> gone_, stopped_;  // since when, of rank processes of this host
};

}  // namespace catena::launch
