// Starts the starter of a job as a child process.
#pragma once

#include <sys/types.h>

#include "base/process.h"
#include "spec/job_spec.h"
#include "starter/starter.h"

namespace catena::launch {

struct StarterProcess {
  pid_t pid = -1;            // and its process group
  Descriptor output, error;  // the reading ends of its standard streams
};

// Throws UserError when there can be no further process. That the starter cannot be executed is
// said on its standard error, with exit code 127.
StarterProcess start_starter(const JobSpec& spec, const StartCommand& command,
                             const SignalQueue& signals);

}  // namespace catena::launch
