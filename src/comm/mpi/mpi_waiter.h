// Waiting for MPI without being hung by a rank that never comes.
#pragma once

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

  // Throws CommError when it gives up; the requests are then cancelled. `doing` is the call's text
  // where one is given.
  void wait(std::vector<MPI_Request>& requests, const std::string& doing, double timeout,
            const Call* call = nullptr);
  void wait(std::vector<MPI_Request>& requests, const Call& call) {
    wait(requests, {}, timeout_, &call);
  }
  void wait(MPI_Request request, const Call& call);
  // Tells the other ranks.
  void broadcast_failure(const std::string& text, int culprit = -1) noexcept;
  // Tells them, and throws PeerError, that `calls` (one text a rank, "" when unknown) differ.
  [[noreturn]] void fail_mismatch(const std::vector<std::string>& calls, const Call& call);
  double timeout() const { return timeout_; }

 private:
  void read_news();
  [[noreturn]] void give_up(std::vector<MPI_Request>& requests, const PeerError& error);

  MPI_Comm news_;
  int rank_, size_;
  double timeout_;
  bool told_ = false;
  const Communicator* owner_ = nullptr;
};

}  // namespace catena::comm::mpi
