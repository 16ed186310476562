// State of a rank in words and numbers, from its slot of the status board.
#pragma once

#include <cstdint>
#include <string>

#include "status/status_board.h"

namespace catena::launch {

// "in all_reduce #41 sum float32[1000] for 3.2 s", "computing for 0.4 s, after all_reduce #40 ...",
// "ended". `now` as comm::monotonic_ns().
std::string describe_state(const comm::SlotSnapshot& slot, std::uint64_t now);

// "3.2 s", "150 s"
std::string seconds_text(double seconds);

// Since a time of the board; 0 for none. Other processes go on while their times are read, so one
// may be later than `now`.
double seconds_between(std::uint64_t since, std::uint64_t now);

// Sent every few seconds by the ranks of jobs that may have others on other machines, whose boards
// cannot be read from here. Times are lengths, as the clocks of hosts differ.
struct StateReport {
  int rank = -1;
  std::string host;
  int pid = 0;        // of the program
  std::string state;  // in words
  bool ended = false;
  // The communicator of its last collective, 0: none, and the number of that call on it.
  std::uint64_t communicator = 0;
  std::uint64_t calls = 0;
  bool waits = false;  // it is inside of that call
  double waited = 0;   // for so many seconds
  // Updates of optimizers, and seconds since the last one; of a step as of late, and of its part
  // outside of calls. 0: none was made, or only one.
  std::uint64_t updates = 0;
  double since_update = 0;
  double step = 0;
  double own_step = 0;
  double age = 0;  // of this report, in seconds; 0: it says what is so now
};

// What the report says when it is that many seconds older: its times go on. Its words stay.
StateReport aged(StateReport report, double seconds);

// Of the rank in that slot, which is in use.
StateReport state_of_slot(const comm::StatusBoard& board, int slot, std::uint64_t now);

}  // namespace catena::launch
