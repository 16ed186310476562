// Identity of this rank process, and the environment of its program.
#pragma once

#include <string>

#include "spec/job_spec.h"

namespace catena::launch {

struct RankIdentity {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  std::string host;
  std::string step;  // of Slurm, "" when its srun is not the starter
};

// From the variables that the starter sets. Throws UserError when they are not there.
RankIdentity rank_identity_from_environment(bool by_srun);

// Decides the device, sets the variables of the program and binds this process (and with it the
// program) to the cores near its device. Returns the device. Throws UserError.
std::string prepare_environment(const RankIdentity& identity, const JobSpec& spec,
                                const std::string& board);

}  // namespace catena::launch
