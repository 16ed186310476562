// The line of Slurm's srun.
#pragma once

#include <string>
#include <vector>

#include "plan/slurm.h"
#include "spec/job_spec.h"

namespace catena::launch {

// "22.05.8" of "slurm-wlm 22.05.8"; "" for the answer of another program.
std::string parse_srun_version(const std::string& output);

// Of the answer to srun --mpi=list: {"pmix", "pmi2"}, without "none".
std::vector<std::string> parse_mpi_kinds(const std::string& output);

// How tasks of srun find each other, by default: "pmix", which Open MPI needs; where this Slurm
// has none, "pmi2"; "" for neither.
std::string choose_mpi_kind(const std::vector<std::string>& kinds);

struct Srun {
  std::string path;
  std::string version;
  std::vector<std::string> mpi_kinds;
};
// Finds srun and asks it. Throws UserError that says what is missing.
Srun find_srun();

// `mpi`: as choose_mpi_kind; not used where the job's own words (or SLURM_MPI_TYPE) choose.
std::vector<std::string> srun_command(const JobSpec& spec, const SlurmAllocation& allocation,
                                      const std::string& mpi);

// Throws UserError in one of several tasks of srun, each of which would start a job.
void refuse_to_be_a_task(const SlurmAllocation& allocation);

// Variables of this process that change what srun makes of the output of tasks, or how many it
// puts on a node: they must not reach it.
std::vector<std::string> variables_to_hide(const JobSpec& spec, const SlurmAllocation& allocation);

}  // namespace catena::launch
