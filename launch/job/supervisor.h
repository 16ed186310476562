// Runs the starter of a job to its end and decides what came of it.
#pragma once

#include <csignal>

#include "base/process.h"
#include "spec/job_spec.h"
#include "starter/starter.h"

namespace catena::launch {

// The signals that the supervisor handles. Create the queue before GPUs are counted, because the
// driver's library then starts a thread.
inline SignalQueue job_signals() {
  return SignalQueue{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
}

// The output of the ranks appears on standard output and standard error, the report at the end on
// standard error. Returns the exit code.
int run_job(const JobSpec& spec, const Starter& starter, SignalQueue& signals);

}  // namespace catena::launch
