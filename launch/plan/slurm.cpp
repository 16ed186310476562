#include "plan/slurm.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "base/text.h"

namespace catena::launch {
namespace {

// Numbers from here on are those of Slurm's own steps: the batch script, the shell of salloc.
constexpr std::uint64_t kOwnSteps = 0xfffffff0u;

int number(const Variables& variable, const char* name) {
  return parse_number(variable(name)).value_or(0);
}

// "h200:2,a100:1" and "2" as 3 and 2.
int count_gpus(const std::string& text) {
  int sum = 0;
  for (const std::string& part : split(text, ','))
    sum += parse_number(part.substr(part.rfind(':') + 1)).value_or(0);
  return sum;
}

int tasks_of(const Variables& variable, int nodes) {
  if (const int tasks = number(variable, "SLURM_NTASKS")) return tasks;
  if (const int tasks = number(variable, "SLURM_NTASKS_PER_NODE")) return tasks * nodes;
  if (const int gpus = count_gpus(variable("SLURM_GPUS"))) return gpus;
  return count_gpus(variable("SLURM_GPUS_PER_NODE")) * nodes;
}

bool is_task(const Variables& variable) {
  const std::string step = variable("SLURM_STEP_ID");
  return !step.empty() && std::strtoull(step.c_str(), nullptr, 10) < kOwnSteps;
}

int required(const Variables& variable, const char* name) {
  const auto value = parse_number(variable(name));
  if (!value)
    throw UserError(std::string("the rank process finds no number in ") + name +
                    "; it must be started by Slurm's srun");
  return *value;
}

}  // namespace

std::string variable_of_process(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<int> parse_slurm_counts(const std::string& text) {
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    const std::size_t times = part.find("(x");
    const auto count = parse_number(part.substr(0, times));
    std::optional<int> repeats = 1;
    if (times != std::string::npos)
      repeats = part.ends_with(')') ? parse_number(part.substr(times + 2, part.size() - times - 3))
                                    : std::nullopt;
    constexpr int kMostNodes = 1 << 20;
    if (!count || !repeats || *repeats > kMostNodes) return {};
    counts.insert(counts.end(), static_cast<std::size_t>(*repeats), *count);
  }
  return counts;
}

SlurmAllocation slurm_allocation(const Variables& variable) {
  SlurmAllocation allocation;
  allocation.job = variable("SLURM_JOB_ID");
  if (allocation.job.empty()) return allocation;
  allocation.nodes = std::max(1, number(variable, "SLURM_JOB_NUM_NODES"));
  allocation.tasks = tasks_of(variable, allocation.nodes);
  const std::vector<int> processors = parse_slurm_counts(variable("SLURM_JOB_CPUS_PER_NODE"));
  allocation.processors = std::accumulate(processors.begin(), processors.end(), 0);
  // Where salloc leaves its shell on the machine that it was called on, that is not a node of the
  // allocation.
  allocation.reaches_out = allocation.nodes > 1 || variable("SLURMD_NODENAME").empty();
  if (is_task(variable))
    allocation.tasks_of_own_step = std::max(1, number(variable, "SLURM_STEP_NUM_TASKS"));
  return allocation;
}

SlurmTask slurm_task(const Variables& variable) {
  SlurmTask task;
  task.rank = required(variable, "SLURM_PROCID");
  task.size = required(variable, "SLURM_STEP_NUM_TASKS");
  task.local_rank = required(variable, "SLURM_LOCALID");
  const auto node = static_cast<std::size_t>(required(variable, "SLURM_NODEID"));
  const std::string per_node = variable("SLURM_STEP_TASKS_PER_NODE");
  const std::vector<int> counts = parse_slurm_counts(per_node);
  if (node >= counts.size())
    throw UserError("the rank process finds no tasks of node " + std::to_string(node) +
                    " in SLURM_STEP_TASKS_PER_NODE='" + per_node +
                    "'; it must be started by Slurm's srun");
  task.local_size = counts[node];
  task.step = variable("SLURM_JOB_ID") + "." + variable("SLURM_STEP_ID");
  return task;
}

bool slurm_binds_gpus(int visible, const Variables& variable) {
  return visible > 0 && visible < number(variable, "SLURM_GPUS_ON_NODE");
}

}  // namespace catena::launch
