// Waiting for MPI without being hung by a rank that never comes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mpi_runtime.h"

namespace catena::comm::mpi {

// Polls requests until they are done, the deadline passes, another rank says that it failed, or the
// records of the other ranks show why this can never end.
class Waiter {
 public:
  // `news` carries failure texts only.
  Waiter(MPI_Comm news, int rank, int size, double timeout);
  void attach(const Communicator& owner) { owner_ = &owner; }

  // Throws PeerError when it gives up; the requests are then still under way. `doing` is the call's
  // text where one is given.
  void wait(std::vector<MPI_Request>& requests, const std::string& doing, double timeout,
            const Call* call = nullptr);
  void wait(std::vector<MPI_Request>& requests, const Call& call) {
    wait(requests, {}, timeout_, &call);
  }
  void wait(MPI_Request request, const Call& call);
  // Waits until one of the requests is done and returns its index; it is null then.
  size_t wait_any(std::vector<MPI_Request>& requests, const Call& call);
  // Cancels and frees messages. Those that have begun go on: their memory must stay.
  static void cancel(std::vector<MPI_Request>& messages);
  // Tells the other ranks.
  void broadcast_failure(const std::string& text, int culprit = -1) noexcept;
  // That an exception ended this rank's use of the communicator.
  void broadcast_abandon() noexcept;
  // Tells them, and throws PeerError, that `calls` (one text a rank, "" when unknown) differ.
  [[noreturn]] void fail_mismatch(const std::vector<std::string>& calls, const Call& call);
  double timeout() const { return timeout_; }

 private:
  void read_news();
  // Polls until is_done() is true, which is called under the lock.
  void poll(const std::function<bool()>& is_done, const std::string& doing, double timeout,
            const Call* call);

  MPI_Comm news_;
  int rank_, size_;
  double timeout_;
  bool told_ = false;
  const Communicator* owner_ = nullptr;
};

}  // namespace catena::comm::mpi
