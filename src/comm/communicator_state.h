// The inside of a communicator: its transport, call records and open group.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catena/comm/transport.h"
#include "catena/core/graph.h"
#include "status_board.h"

namespace catena::comm {

// The slots of a communicator's ranks on the status board of this host.
struct BoardPlace {
  std::shared_ptr<StatusBoard> board;
  std::vector<int> slots;  // of every rank; -1 on other hosts
  // Of every rank, its number in the job and the name of its host; empty when not known.
  std::vector<int> ranks = {};
  std::vector<std::string> hosts = {};
};

// A checked call, before staging.
struct Communicator::Request {
  const char* who;
  CommOp op;
  Reduce how = {};
  int root = -1;
  int64_t count = 0;
  Array input = {};
  Array output = {};
  CommOp recorded_op = op;
  int recorded_kind = 0;
};

struct Communicator::State {
  // A call of an open group with what must live and happen until its end.
  struct Pending {
    Call call;
    CallRecord record;
    Array input, output;
    Array target;  // receives output when that is a temporary
  };

  State(std::unique_ptr<Transport> moved, Device on, const CommunicatorOptions& chosen,
        uint64_t number);

  // Of send (0) or recv (1) with a peer: both ends count the same calls.
  CallHistory& pair_history(bool receive, int peer);
  // For parts of libcatena that are not members of Communicator.
  static State& of(const Communicator& comm) { return *comm.state_; }
  void mark_failed(const std::string& text, bool by_peer, int blamed = -1);
  // The same for what a transport threw.
  void mark_failed(const std::exception& error);

  std::unique_ptr<Transport> transport;
  CommunicatorPtr control;
  Topology topology;
  Device device;
  CommunicatorOptions options;
  uint64_t id;
  CallHistory history;
  std::array<std::vector<std::unique_ptr<CallHistory>>, 2> pairs;
  BoardPlace place;
  StatusSlot own_slot;

  mutable std::mutex failure_mutex;
  std::string failure;
  std::atomic<bool> failed{false};
  std::atomic<int> blamed{-1};  // whom the last problem that was found is to blame on
  bool closed = false;

  Stream side;
  bool grouping = false;
  std::vector<Pending> pending;
  std::map<int, std::function<void()>> callbacks;
  int next_callback = 0;
  Fault fault;
  std::atomic<uint64_t> made{0};
  std::atomic<uint64_t> compared{0};  // value of made when differences were last looked for
  int splits = 0;
  std::vector<cuda::GraphDestroyer> graphs;  // that recorded calls, and go first
  uint64_t capture = 0;         // the last graph capture with calls of this communicator
  bool capture_of_all = false;  // more than messages between two ranks were captured
  uint64_t made_over_it = 0;    // communicators that have this one as control
  pid_t process;                // that made it; children that it forks have no part in it
};

// The number of messages from rank `source` to rank `destination` as a communicator of its own.
uint64_t pair_id(uint64_t communicator, int source, int destination);

// make_communicator for transports inside libcatena that bring their own board.
CommunicatorPtr make_communicator_at(std::unique_ptr<Transport> transport, Device device,
                                     const CommunicatorOptions& options, BoardPlace place,
                                     uint64_t id);
// The board of this process and its slots for all ranks; exchanges slots over `comm`.
BoardPlace find_board(Communicator& comm);
// Leaves an error on the slot of this process, if catena-run or a communicator gave it one.
void note_failure(std::string_view text);

// Also starts the call numbers again, under another id.
void set_place(Communicator& comm, BoardPlace place, uint64_t id);
// The first difference in the last `depth` calls of the ranks on this host; "" when there is none.
std::string difference_on_board(const BoardPlace& place, int rank, int size, uint64_t id, int depth,
                                int* blamed = nullptr);
// The same over rings of all ranks.
std::string difference_of(const std::vector<std::vector<CallRecord>>& rings, int rank, uint64_t id);
// Of rings whose calls do not differ: the first that some ranks have made and others have not.
std::string missing_call_of(const std::vector<std::vector<CallRecord>>& rings, uint64_t id);
// The first difference, or failure of a peer, that the boards show; see Communicator::find_problem.
std::string problem_on_board(const BoardPlace& place, int rank, int size, uint64_t id,
                             double waited_seconds, int* blamed = nullptr);
// The number in the whole job of a communicator's rank, as far as this host knows it.
int rank_in_job(const BoardPlace& place, int rank);
// The number of the last call on a communicator among these; 0: none.
uint64_t last_call(const std::vector<CallRecord>& ring, uint64_t id);
// The same of every rank; nothing where the records do not tell, on other hosts and where calls on
// other communicators may have overwritten them.
using LastCalls = std::vector<std::optional<uint64_t>>;
LastCalls last_calls(const BoardPlace& place, uint64_t id);
// The ranks that are known not to have made this call yet.
std::vector<int> late_ranks(const LastCalls& last, uint64_t sequence);
// The ranks whose last call is the oldest; none when all known made the same number.
std::vector<int> slowest_ranks(const LastCalls& last);
// What describe_delay says; a place without a board tells nothing.
WaitProblem describe_delay(const BoardPlace& place, uint64_t id, double timeout, const Wait& wait);

}  // namespace catena::comm
