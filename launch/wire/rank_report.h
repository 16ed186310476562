// Reports of a rank process to the launcher, one line each on the report stream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/program_digest.h"
#include "status/status_board.h"
#include "wire/state_report.h"

namespace catena::launch {

// Sent when the rank process has started.
struct StartReport {
  int rank = -1;
  int size = 0;  // of the world, as the starter made it
  int local_rank = 0;
  int local_size = 1;
  int pid = 0;                // of the rank process
  std::uint64_t started = 0;  // comm::ProcessLife::start of it
  std::string host;
  std::string board;  // path of the status board, "" when there is none
  std::string log;    // path of the log file, "" when there is none
  std::string step;   // what the batch system calls the job, "" when it did not start the rank
  Digests digests;    // of the program's files, empty when they were not asked for
};

// Sent when the program has ended, or could not be started.
struct EndReport {
  int rank = -1;
  std::string host;
  int exit_code = 0;
  int signal = 0;  // 0: it exited
  bool core_dumped = false;
  bool not_started = false;     // `error` says why
  std::uint64_t stop_time = 0;  // when it was asked to end, 0: it was not
  int stop_signal = 0;          // with which an outsider asked, see AskedReport
  std::uint64_t end_time = 0;   // wall clock, ns
  // From the status board (or from a C++ exception's message on stderr).
  std::string error;
  std::uint64_t error_time = 0;
  std::string peer_error;  // it noticed that another rank failed
  std::uint64_t peer_error_time = 0;
  int culprit_rank = -1;  // that the peer error names
  comm::Phase phase = comm::Phase::empty;
  std::string operation;
  std::string last_call;
  std::string last_lines;   // end of its stderr
  std::string log_problem;  // why its log is not complete
  // Why /dev/shm had no room for the ranks of the host, where it failed before MPI connected it.
  std::string shared_memory;
};

// Sent at once when a signal of somebody other than catena-run and its starter asks the rank
// process to end. The job is then stopped, and the EndReport follows.
struct AskedReport {};

// Sent every second by the ranks of jobs that may have others on other machines.
struct AliveReport {};

using RankReport =
    std::variant<std::monostate, AliveReport, AskedReport, StateReport, StartReport, EndReport>;

// Of the rank's host and the connection to it, as ranks send them all the time.
inline bool is_sign_of_life(const RankReport& report) {
  return std::holds_alternative<AliveReport>(report) || std::holds_alternative<StateReport>(report);
}

// With the line end.
std::string to_line(const AliveReport& report);
std::string to_line(const AskedReport& report);
std::string to_line(const StateReport& report);
std::string to_line(const StartReport& report);
std::string to_line(const EndReport& report);
// Nothing for a line that is none of these.
RankReport parse_rank_report(std::string_view line);

}  // namespace catena::launch
