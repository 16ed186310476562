// Runs mpirun to its end and decides what came of it.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "base/process.h"
#include "job/report.h"

namespace catena::launch {

struct Job {
  std::string mpirun;                    // path of the executable
  std::vector<std::string> command;      // argv of mpirun
  std::vector<std::string> environment;  // "NAME=VALUE", set on top of the current one
  std::string id;                        // as in RankSettings
  int ranks = 0;
  std::vector<std::string> planned_hosts;  // of each rank; empty when mpirun decides
  double start_timeout = 60;
  double timeout = 300;
  double grace = 3;       // between SIGTERM and SIGKILL of ranks
  std::string network;    // as in JobOutcome
  bool terminal = false;  // standard output is a terminal
};

// What the supervisor acts on. Made before the driver's library, which counts GPUs, starts a
// thread.
inline SignalQueue job_signals() {
  return SignalQueue{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
}

// The output of the ranks appears on standard output and standard error, the report at the end on
// standard error. Returns the exit code.
int run_job(const Job& job, SignalQueue& signals);

}  // namespace catena::launch
