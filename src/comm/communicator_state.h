// The inside of a communicator: its transport, call records and open group.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "catena/comm/fault.h"
#include "catena/comm/transport.h"
#include "catena/core/graph.h"
#include "comm/diagnosis/peer_status.h"
#include "status/status_board.h"

namespace catena::comm {

// A checked call, before staging.
struct Communicator::Request {
  const char* who;
  CallSignature call;
  double weight = 1;
  Array input = {};
  Array output = {};
  const std::type_info* type = nullptr;  // of a host object
  const char* purpose = nullptr;         // see PurposeScope
};

struct Communicator::State {
  // A call of an open group with what must live and happen until its end.
  struct Pending {
    Call call;
    CallRecord record;
    Array input, output;
    Array target;   // receives output when that is a temporary
    Stream stream;  // on which it receives it
  };

  State(std::unique_ptr<Transport> moved, Device on, const CommunicatorOptions& chosen,
        uint64_t number);

  // Of send (0) or recv (1) with a peer: both ends count the same calls.
  CallHistory& pair_history(bool receive, int peer);
  // Counts the call.
  CallRecord next_record(const CallSignature& call);
  // The control communicator compares host calls among themselves. Recorded here too, they are also
  // compared with calls on device arrays: some ranks may be in a barrier while others reduce.
  void record_host_call(const CallSignature& call);
  // Runs the callbacks of before_close and destroys the graphs that recorded calls.
  void run_callbacks();
  // The fault that a test has set for this call, if any; false: the call is to be skipped.
  bool apply_fault() const;
  void throw_if_failed();
  // The first call in which the ranks of all hosts differ, or "". Collective over `control`.
  std::string difference_over_hosts();
  // For parts of libcatena that are not members of Communicator.
  static State& of(const Communicator& comm) { return *comm.state_; }
  void mark_failed(const std::string& text, bool by_peer, int culprit = -1);
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
  std::atomic<int> culprit{-1};  // of the last problem that was found
  bool closed = false;

  Stream side;
  bool grouping = false;
  std::vector<Pending> pending;
  std::map<int, std::function<void()>> callbacks;
  int next_callback = 0;
  std::function<void()> when_met;  // to close
  Fault fault;
  std::atomic<uint64_t> made{0};
  std::atomic<uint64_t> compared{0};  // value of made up to which all ranks agree
  int no_sync_scopes = 0;
  const char* purpose = nullptr;
  double* rider = nullptr;  // of the next collective
  int32_t updates = 0;      // of its first optimizer
  int optimizers = 0;       // that were set up on it, for data-parallel training
  int splits = 0;
  std::vector<cuda::GraphDestroyer> graphs;  // that recorded calls, and go first
  uint64_t capture = 0;         // the last graph capture with calls of this communicator
  bool capture_of_all = false;  // more than messages between two ranks were captured
  uint64_t made_over_it = 0;    // communicators that have this one as control
  MeshAxes axes;                // along which its ranks lie
  int meshes = 0;               // that were made over it
  // As place.coordinates, which other threads read and is never changed; set by a Mesh, too.
  std::vector<std::string> coordinates;
  pid_t process;  // that made it; children that it forks have no part in it
  std::atomic<const char*> running{nullptr};  // the call that a thread is in, see OneThread
  std::atomic<std::thread::id> caller{};      // that thread
};

// While it lives, the thread is in a call of the communicator; the calls that this one makes belong
// to it. A call of another thread meanwhile ends the communicator with a CommError that names both:
// on other ranks the threads may come in another order, so that sums would mix their values.
class OneThread {
 public:
  OneThread(Communicator& comm, const char* who);
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  Communicator::State* state_ = nullptr;  // null inside another call of the thread
};

// make_communicator for transports inside libcatena that bring their own board.
CommunicatorPtr make_communicator_at(std::unique_ptr<Transport> transport, Device device,
                                     const CommunicatorOptions& options, BoardPlace place,
                                     uint64_t id);
// A communicator of some ranks of another one, of which `transport` is made; `origin` tells it from
// other such communicators.
CommunicatorPtr make_part(const Communicator& comm, std::unique_ptr<Transport> transport,
                          const std::vector<int>& members, const CallRecord& origin);
// The board of this process and its slots for all ranks; exchanges slots over `comm`.
BoardPlace find_board(Communicator& comm);
// Also starts the call numbers again, under another id.
void set_place(Communicator& comm, BoardPlace place, uint64_t id);

}  // namespace catena::comm
