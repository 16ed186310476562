// The watchdog of a rank's process, and what is said when ranks do not reach the end of the
// program.
#pragma once

#include <string>

namespace catena::comm {

// Starts, once a process, a thread that writes a heartbeat to the status board. It ends the process
// with exit code 1 and a text on the board when the rank cannot go on by itself (see
// describe_stuck). `limit` is in seconds; the longest limit of all calls counts. For transports
// that call a library without deadlines: they call this after each communicator they make.
void watch_process(double limit);

// Why this rank waits in vain at the end of the program: names the ranks of this host that have not
// reached it, and what they do. `culprit` becomes the first of them, -1 if none is known.
std::string describe_missing_at_exit(double waited, int* culprit);

}  // namespace catena::comm
