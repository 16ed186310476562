// Plan of a job: how many ranks run where and on what, decided before anything is started.
#pragma once

#include <climits>
#include <string>

#include "spec/job_spec.h"

namespace catena::launch {

// What a starter takes of this machine to start ranks on it.
struct StarterNeeds {
  std::string name;  // "mpirun"
  long files = 0;    // that one process of it has open, besides
  long files_of_rank = 0;
  bool in_allocation = false;  // it starts them on the nodes of the batch system's allocation alone
};

// What the decision depends on besides the job.
struct Machine {
  int gpus = 0;                     // of this machine
  std::string gpu_problem;          // why there are none
  std::string device;               // CATENA_DEVICE
  int scheduled_tasks = 0;          // ranks of the batch system's allocation (Slurm), 0: none
  bool allocation_is_here = false;  // it has no other machine than this one
  std::string hostfile;             // one that the cluster named in the environment
  // What a user may have at a time, and a process may have open.
  long most_processes = LONG_MAX, most_files = LONG_MAX;
};
Machine this_machine();

// Decides ranks, hosts, devices and whether there are other machines. Throws UserError when job and
// machine do not go together.
JobSpec make_plan(JobSpec spec, const Machine& machine, const StarterNeeds& needs);

// How many CPU devices a program has (catena::kMaxDevices).
inline constexpr int kCpuDevices = 64;

// The device of one rank: "cuda:3", "cpu:1". `gpus_here` are those of the rank's own host. CPU
// devices begin again after the last one: each rank is a separate process, in which the number is
// only a name. `own_gpus`: the batch system has given each rank GPUs that only it sees, so that the
// first is meant. Throws UserError.
std::string device_of_rank(const Devices& devices, int local_rank, int local_size, int gpus_here,
                           const std::string& gpu_problem, bool own_gpus = false);

}  // namespace catena::launch
