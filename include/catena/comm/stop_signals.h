// Signals that ask a program to end soon, but in order: batch systems send them some time before
// they end a job, catena-run when it is stopped.
//
//   const comm::StopSignals stop;
//   for (; step < steps && !stop.received(*comm); ++step) ...
//   save(step);
#pragma once

#include <atomic>
#include <csignal>
#include <vector>

#include "catena/comm/communicator.h"

namespace catena::comm {

// While it lives, these signals do not end the process but are noted; the handlers from before come
// back with its end. The signal by which several ranks have agreed to stop does nothing when it
// comes late: a rank may hear of it through another one first, and Slurm may send it twice. Two of
// them are taken, whenever they come. SIGTERM comes from catena-run, scancel and Kubernetes;
// SIGUSR1 is what Slurm's --signal=B:USR1@120 is used with, and catena-run hands it on to all
// ranks. A program that does not end is killed: see --grace of catena-run.
class StopSignals {
 public:
  // ValueError for a number that is not a signal or cannot be caught, and while there is another
  // object.
  explicit StopSignals(const std::vector<int>& signals = {SIGTERM, SIGUSR1});
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that came last, 0: none has.
  int received() const noexcept;
  // The same on all ranks: the highest that any rank has got, 0: none has any. Collective: one
  // number of every rank, through host memory.
  int received(Communicator& comm) const;

 private:
  struct Before {
    int signal;
    struct sigaction action;
  };
  void restore() noexcept;
  mutable std::atomic<int> agreed_{0};  // the last result over ranks

  std::vector<Before> before_;
};

}  // namespace catena::comm
