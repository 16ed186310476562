// Search of a communicator's ranks for the status board of their host: that of catena-run, or one
// that they make together.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "communicator_state.h"
#include "status/process_board.h"

namespace catena::comm {
namespace {

// What a rank brings to the common search for boards.
struct Start {
  char host[64];
  char name[48];  // of the board that it would make, which others cannot guess
  int32_t has_board;
};

Start make_start(bool has_board) {
  Start start{};
  std::random_device random;
  std::snprintf(start.host, sizeof start.host, "%s", host_name().c_str());
  std::snprintf(start.name, sizeof start.name, "/catena-%d-%08x%08x", getpid(), random(), random());
  start.has_board = has_board;
  return start;
}

// The board that catena-run gave this process.
void take_launchers_board(int rank) {
  const char* name = std::getenv("CATENA_STATUS_BOARD");
  if (!name || !*name) return;
  StatusBoard board = StatusBoard::attach_from_environment();
  const int slot = board.local_rank();
  adopt_board(std::move(board), slot, rank);
}

// Creates one board for the ranks of this host that plain mpirun started. The first of them
// proposes its name.
void make_common_board(const Communicator& comm, const std::vector<Start>& starts) {
  const Topology& t = comm.topology();
  size_t leader = starts.size();
  for (size_t r = 0; r < starts.size(); ++r) {
    if (t.hosts[r] != t.inter_rank) continue;
    CATENA_CHECK(CommError, !starts[r].has_board, "rank ", r,
                 " of the same host has a status board and this one has none");
    leader = std::min(leader, r);
  }
  adopt_board(StatusBoard::create(starts[leader].name, t.intra_size), t.intra_rank, comm.rank());
}

// The text of what `step` throws; "" when it does not.
template <class Step>
std::string problem_in(Step step) {
  try {
    step();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

// One rank without a board, for want of shared memory on its host, ends the job on all hosts.
void require_boards(const std::vector<std::string>& problems, const std::vector<Start>& starts,
                    int rank) {
  for (size_t r = 0; r < problems.size(); ++r) {
    if (problems[r].empty()) continue;
    const std::string text =
        message("create_communicator: rank ", r, " on ", starts[r].host, ": ", problems[r]);
    if (problems[size_t(rank)].empty()) process_slot().fail_because_of_peer(int(r), text);
    throw PeerError(text, int(r));
  }
}

void make_boards(Communicator& comm) {
  std::string problem;
  if (!own_board()) problem = problem_in([&] { take_launchers_board(comm.rank()); });
  // Whoever has a board already takes part as well: those of another host may not.
  const bool had_board = own_board() != nullptr;
  const Start mine = make_start(had_board);
  const std::vector<Start> starts = comm.all_gather_object(mine);
  if (!had_board && problem.empty()) problem = problem_in([&] { make_common_board(comm, starts); });
  const auto problems = comm.all_gather_bytes(problem);  // all of the host have it open
  if (!had_board) StatusBoard::unlink(mine.name);        // one of them made it
  require_boards(problems, starts, comm.rank());
}

}  // namespace

BoardPlace find_board(Communicator& comm) {
  const auto lock = lock_process_board();
  make_boards(comm);
  struct Place {
    int slot, rank;
    char host[64];
  };
  const std::shared_ptr<StatusBoard> board = own_board();
  Place mine{own_board_slot(), board->read(own_board_slot()).rank, {}};
  std::snprintf(mine.host, sizeof mine.host, "%s", host_name().c_str());
  BoardPlace place{board, {}, {}, {}};
  const auto places = comm.all_gather_object(mine);
  for (int r = 0; r < comm.size(); ++r) {
    const Place& of = places[size_t(r)];
    const bool here = comm.topology().hosts[size_t(r)] == comm.inter_rank();
    place.slots.push_back(here ? of.slot : -1);
    place.ranks.push_back(of.rank);
    place.hosts.push_back(of.host);
  }
  process_slot().set_phase(Phase::running);
  return place;
}

}  // namespace catena::comm
