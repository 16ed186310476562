// How many ranks run where and on what, decided before anything is started.
#pragma once

#include <climits>
#include <string>
#include <vector>

#include "cli/options.h"
#include "spec/hosts.h"

namespace catena::launch {

// What the decision depends on besides the options.
struct Machine {
  int gpus = 0;             // of this machine
  std::string gpu_problem;  // why there are none
  std::string device;       // CATENA_DEVICE
  int scheduled_tasks = 0;  // ranks of the batch system's allocation (Slurm), 0: none
  std::string hostfile;     // one that the cluster named in the environment
  // What a user may have at a time, and a process may have open.
  long most_processes = LONG_MAX, most_files = LONG_MAX;
};
Machine this_machine();

struct Plan {
  int ranks = 0;
  std::vector<Host> hosts;     // empty: this machine, or what the batch system allocated
  bool several_hosts = false;  // whose programs must be the same file
  // "cpu", "cuda:0,1,3" (the GPU of each local rank), or "auto": each host looks for itself.
  std::string devices;
};

// Throws UserError when options and machine do not go together.
Plan make_plan(const Options& options, const Machine& machine);

// How many CPU devices a program has (catena::kMaxDevices).
inline constexpr int kCpuDevices = 64;

// The device of one rank: "cuda:3", "cpu:1". `gpus_here` are those of the rank's own host. CPU
// devices begin again after the last one: each rank is a process of its own, in which the number is
// only a name. Throws UserError.
std::string device_of_rank(const std::string& devices, int local_rank, int local_size,
                           int gpus_here, const std::string& gpu_problem);

}  // namespace catena::launch
