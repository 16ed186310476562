// What a rank process tells the launcher, one line each on the record stream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace catena::launch {

// Sent when the rank process has started.
struct HelloRecord {
  int rank = -1;
  int size = 0;  // of the world, as mpirun made it
  int local_rank = 0;
  int local_size = 1;
  int pid = 0;  // of the rank process
  std::string host;
  std::string device;
  std::string board;   // path of the status board, "" when there is none
  std::string log;     // path of the log file, "" when there is none
  std::string digest;  // as program_digest, "" when it was not asked for
};

// Sent when the program has ended, or could not be started.
struct EndRecord {
  int rank = -1;
  std::string host;
  int exit_code = 0;
  int signal = 0;  // 0: it exited
  bool core_dumped = false;
  bool not_started = false;     // `error` says why
  std::uint64_t stop_time = 0;  // when it was told to end, 0: it was not
  std::uint64_t end_time = 0;   // wall clock, ns
  // From the status board (or from a C++ exception's message on stderr).
  std::string error;
  std::uint64_t error_time = 0;
  std::string peer_error;  // it noticed that another rank failed
  std::uint64_t peer_error_time = 0;
  int blamed_rank = -1;
  std::string phase;
  std::string operation;
  std::string last_call;
  std::string last_lines;   // end of its stderr
  std::string log_problem;  // why its log is not complete
};

// Sent every second by the ranks of jobs of several hosts; says no more than that.
inline constexpr std::string_view kAlive = "alive\n";

std::string to_line(const HelloRecord& record);
std::string to_line(const EndRecord& record);
inline bool is_alive(std::string_view line) { return line.starts_with("alive"); }
bool is_hello(std::string_view line);
bool is_end(std::string_view line);
HelloRecord parse_hello(std::string_view line);
EndRecord parse_end(std::string_view line);

}  // namespace catena::launch
