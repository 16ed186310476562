// Allocation and step of Slurm that this process is in, from the environment.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace catena::launch {

// The value of a variable, "" when it is not set.
using Variables = std::function<std::string(const char* name)>;
std::string variable_of_process(const char* name);

// "2(x3),1" as {2, 2, 2, 1}; empty for a text that is not such a list.
std::vector<int> parse_slurm_counts(const std::string& text);

struct SlurmAllocation {
  std::string job;     // its number, "" outside of allocations
  int nodes = 1;       // of it
  int tasks = 0;       // that it was made for (--ntasks, --ntasks-per-node, GPUs); 0: not said
  int processors = 0;  // of all nodes together; 0: not said
  bool reaches_out = false;   // other machines than this one belong to it
  int tasks_of_own_step = 0;  // of the step of srun that this process is a task of; 0: of none
};
SlurmAllocation slurm_allocation(const Variables& variable = variable_of_process);

// The place of a task of srun among the tasks of its step.
struct SlurmTask {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  std::string step;  // "4711.0"
};
// Throws UserError that names the variable that is missing.
SlurmTask slurm_task(const Variables& variable = variable_of_process);

// Whether Slurm has bound each task of a node to GPUs of its own, which the task counts from 0:
// --gpus-per-task, --gpu-bind. `visible`: GPUs that this task can use.
bool slurm_binds_gpus(int visible, const Variables& variable = variable_of_process);

}  // namespace catena::launch
