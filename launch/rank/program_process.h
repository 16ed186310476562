// The program of a rank as a child process.
#pragma once

#include <csignal>

#include "base/process.h"
#include "rank/rank_identity.h"

namespace catena::launch {

struct ProgramProcess {
  pid_t pid = -1;            // and its process group
  Descriptor output, error;  // the reading ends of its standard streams

  bool is_silent() const { return !output.open() && !error.open(); }
  void signal(int signal) const { kill(-pid, signal); }  // to the group
};

// Rank 0's standard output is a terminal when catena-run has one, so that the program draws its bar
// as it would without a launcher. Throws UserError when it cannot be started.
ProgramProcess start_program(const JobSpec& spec, const RankIdentity& identity,
                             const SignalQueue& signals);

// Removes what a program of Open MPI that was killed leaves in the memory that the ranks of a host
// share: its files in /dev/shm, "vader_segment.HOST.UID.JOB.RANK" (version 5: sm_segment...). Those
// who use them have them mapped. Does nothing where Open MPI has not started this process.
void remove_shared_memory(int local_rank);

}  // namespace catena::launch
