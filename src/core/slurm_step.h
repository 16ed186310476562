// The step of Slurm (what one srun starts) that this process is a task of.
#pragma once

#include <optional>
#include <string>

namespace catena {

struct SlurmStep {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  std::string source;  // the variable that gave the size
};

// From the environment. Nothing outside of Slurm, and none in a batch script or the shell of
// salloc: they have the variables of the allocation, but are one process each.
std::optional<SlurmStep> slurm_step();

}  // namespace catena
