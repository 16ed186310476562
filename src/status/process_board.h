// The status board of this process and the slot that belongs to it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "status_board.h"

namespace catena::comm {

// Gives this process its slot, for as long as it lives. From then on an uncaught exception, an exit
// code other than 0 and the end of the program are written there. At most once a process, under the
// lock of lock_process_board().
void adopt_board(StatusBoard&& board, int slot, int rank);
// Held while the ranks of a communicator look for their boards, which may take as long as they wait
// for each other.
std::unique_lock<std::mutex> lock_process_board();

// Empty before adopt_board().
StatusSlot process_slot();
// The board with that slot; null before adopt_board().
std::shared_ptr<StatusBoard> own_board();
int own_board_slot();

// Whether this is the process that took the slot, and not a child that it forked: a child shares
// the rank's memory, exit handlers included, but neither its place on the board nor its MPI.
bool is_rank_process();

// Leaves an error on the slot of this process. Before adopt_board() it goes to the slot that
// catena-run gave the process, if there is one. Throws when that board cannot be opened.
void note_process_failure(std::string_view text);

// As gethostname gives it.
std::string host_name();

}  // namespace catena::comm
