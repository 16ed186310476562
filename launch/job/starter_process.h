// Starts mpirun for a job.
#pragma once

#include <sys/types.h>

#include "base/process.h"
#include "job/supervisor.h"

namespace catena::launch {

struct MpirunProcess {
  pid_t pid = -1;            // and its process group
  Descriptor output, error;  // the reading ends of its standard streams
};

// Throws UserError when there can be no further process. That mpirun cannot be executed is said on
// its standard error, with exit code 127.
MpirunProcess start_mpirun(const Job& job, const SignalQueue& signals);

}  // namespace catena::launch
