// The inside of a communicator, for code that extends catena: transports, optimizers over several
// ranks, graph capture, diagnosis and tests. Programs that train a model need none of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "catena/comm/communicator.h"
#include "catena/core/error.h"

namespace catena::comm {

class Transport;

// A view of one communicator, which must not be destroyed before it. Cheap to make:
// internals(comm).calls().
class CommunicatorInternals {
 public:
  explicit CommunicatorInternals(const Communicator& comm) : comm_(comm) {}

  // The part that moves bytes.
  Transport& transport() const;
  // The number of calls that this rank has made. Thread-safe.
  uint64_t calls() const;
  // The number of a rank of this communicator in the whole job. -1 stays -1.
  int rank_in_job(int rank) const;

  // Why pending calls cannot complete (a mismatched call, a dead or exited rank), judged from the
  // status of the ranks on this host. "" if no cause is known. `culprit` becomes the rank of the
  // job that is at fault, or -1. With `waited_seconds` above 0 a rank that has left the program is
  // a cause; from 2 s on ranks that wait for each other are one. Thread-safe.
  std::string find_problem(double waited_seconds, int* culprit = nullptr) const;
  // Ranks on this host that wait for each other in calls of this communicator, so that none of them
  // can go on; "" when there are none. `culprit` as above. Thread-safe.
  std::string find_deadlock(int* culprit = nullptr) const;
  // The first call in which the ranks on this host differ, or "". Compares the calls since the last
  // time that all ranks had come, so that it is cheap enough for every host wait. Thread-safe.
  std::string find_difference() const;
  // Whether find_difference has found all calls of this rank equal on all ranks of this host. Calls
  // that another rank has yet to make may still differ. Thread-safe.
  bool is_compared() const;
  // Collective over host messages. Waits for every rank and returns the first difference of all
  // calls so far, and why a rank is missing; "" when all agree. It uses no device, so it may run
  // while a graph is captured. cuda::Graph::capture calls it for every communicator that reduced,
  // gathered or broadcast device arrays in the step, and throws CommError on a difference before
  // anything is launched. All ranks of these communicators must then capture.
  std::string compare_with_all() const;

  // Marks the communicator as failed: every later call throws `text`. For failures that are
  // detected outside of a call. The report of the job names this rank as the culprit, or, when
  // `by_peer` is set, the rank `culprit` of the job (-1: no rank in particular). Thread-safe.
  void note_failure(const std::string& text, bool by_peer, int culprit) const;
  // Throws when the communicator, or work that it queued earlier, has failed.
  void throw_if_failed() const;
  // Watches work on the stream that the communicator did not issue itself: if it does not complete
  // because of another rank, the communicator fails. Launches of a cuda::Graph that recorded calls
  // of the communicator are watched without this.
  void watch(const Stream& stream) const;

  // Collective: memory of device() for arrays that go through many collectives, which are faster
  // there. Null where the communicator has none, when it is closed, when ranks ask for different
  // sizes and during a capture; on all ranks alike. It may outlive the communicator.
  StoragePtr allocate_shared(size_t bytes) const;
  // Collective: makes what the communicator needs for scattered sums of an optimizer's gradients,
  // of so many bytes at most over all ranks.
  void prepare_scattered_sums(size_t bytes) const;
  // Whether scattered sums of gradients in an optimizer's blocks (allocate_shared), of so many
  // bytes over all ranks, leave the multiprocessors of a GPU to other work; before
  // prepare_scattered_sums, whether they would. Equal on all ranks.
  bool moves_by_copies(size_t bytes) const;
  // How collectives on device arrays are made: "NCCL 2.28.3; sums up to ..."; "" where there is one
  // way only.
  std::string ways() const;

  // `callback` runs once, before the communicator closes or is destroyed. If an exception ends the
  // communicator, its calls throw by then. Returns a number for cancel_before_close.
  int before_close(std::function<void()> callback) const;
  void cancel_before_close(int id) const;

  // `callback` runs once all ranks have come to close the communicator, while it still carries
  // messages; not where it has failed, nor where ranks do not meet to close it. One at a time.
  void when_all_close(std::function<void()> callback) const;

  // A number for a multi-node optimizer that is set up on the communicator, from 1 on. Equal on all
  // ranks, which set them up in the same order.
  int next_optimizer() const;
  // How many updates the ranks have made, for the report of a rank that closes before others do.
  // Counts as a note_update().
  void set_updates(int64_t count) const;
  // This rank has made an update, for catena-run --status.
  void note_update() const;
  // Whether a Communicator::group is open.
  bool in_group() const;
  // See PurposeScope.
  const char*& purpose() const;
  // Whether collectives on arrays of device() take a rider, and the one for the next: RiderScope.
  bool takes_riders() const;
  double*& rider() const;
  // The number of parallel::NoSync scopes that are alive.
  int& no_sync_scopes() const;

 private:
  const Communicator& comm_;
};

// The view of a communicator, which must outlive it.
inline CommunicatorInternals internals(const Communicator& comm) {
  return CommunicatorInternals(comm);
}

// While it lives, `number` becomes its sum over the ranks in the next collective on arrays, without
// a message for it: it travels with the comparison of calls. Ranks without such a scope add 0.
// Where takes_riders() is true.
class RiderScope {
 public:
  RiderScope(Communicator& comm, double& number) : rider_(internals(comm).rider()) {
    rider_ = &number;
  }
  ~RiderScope() { rider_ = nullptr; }
  RiderScope(const RiderScope&) = delete;
  RiderScope& operator=(const RiderScope&) = delete;

 private:
  double*& rider_;
};

// While it lives, the calls of the communicator serve what `purpose` names ("evaluate", "update"),
// which must outlive it: errors about calls in which ranks differ say so. `comm` may be null.
class PurposeScope {
 public:
  PurposeScope(Communicator* comm, const char* purpose)
      : purpose_(comm ? &internals(*comm).purpose() : nullptr),
        before_(comm ? *purpose_ : nullptr) {
    if (comm && !before_) *purpose_ = purpose;
  }
  ~PurposeScope() {
    if (purpose_) *purpose_ = before_;
  }
  PurposeScope(const PurposeScope&) = delete;
  PurposeScope& operator=(const PurposeScope&) = delete;

 private:
  const char** purpose_;
  const char* before_;
};

// The communicator of a call whose backward comes later. CommError, which begins with who(), if it
// was destroyed before.
template <class Who>
CommunicatorPtr alive_in_backward(const std::weak_ptr<Communicator>& comm, Who who) {
  CommunicatorPtr alive = comm.lock();
  CATENA_CHECK(CommError, alive, who(),
               ": backward after the communicator was destroyed; keep it until then");
  return alive;
}

}  // namespace catena::comm
