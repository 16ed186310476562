// Runs the starter of a job once, to its end, and says what came of it.
#pragma once

#include <csignal>

#include "base/process.h"
#include "job/outcome.h"
#include "job/report.h"
#include "spec/job_spec.h"
#include "starter/starter.h"

namespace catena::launch {

// The signals that the supervisor handles. Create the queue before GPUs are counted, because the
// driver's library then starts a thread.
inline SignalQueue job_signals() {
  return SignalQueue{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
}

struct Attempt {
  JobOutcome outcome;
  Report report;
  double seconds = 0;
  // The signal by which somebody asked catena-run to end, also when the job was ending already
  // because of a failure; 0: nobody did.
  int asked = 0;
};

// The output of the ranks appears on standard output and standard error, the report at the end on
// standard error.
Attempt run_attempt(const JobSpec& spec, const Starter& starter, SignalQueue& signals);

}  // namespace catena::launch
