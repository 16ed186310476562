// The slot of this process on the status board of its host.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "status_board.h"

namespace catena::comm {

// Empty before the process has its first communicator.
StatusSlot process_slot();

// The board with that slot; null before. It lives as long as the process.
std::shared_ptr<StatusBoard> own_board();
int own_board_slot();

// Whether this is the process that took the slot, and not a child that it forked: a child shares
// the rank's memory, exit handlers included, but neither its place on the board nor its MPI.
bool is_rank_process();

// Starts, once, the thread that beats and ends the process, with exit code 1 and a text on the
// board, when it cannot go on by itself (see describe_stuck). `limit` in seconds; the longest of
// all calls counts. For transports that call a library without deadlines, after each communicator.
void watch_process(double limit);

// Why the end of the program, which this rank has reached, is not reached by all: names those of
// this host that have not come, and what they do. `blamed`: the first of them, -1 if none is known.
std::string describe_missing_at_exit(double waited, int* blamed);

}  // namespace catena::comm
