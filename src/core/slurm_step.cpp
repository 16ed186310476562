#include "core/slurm_step.h"

#include <cstdlib>
#include <string>

#include "core/environment.h"

namespace catena {
namespace {

// Numbers from here on are those of Slurm's own steps: the batch script, the shell of salloc.
constexpr unsigned long long kOwnSteps = 0xfffffff0u;

int number(const char* name, int otherwise) {
  const char* text = first_set({name});
  return text ? std::atoi(text) : otherwise;
}

// Of the node, in "2(x3),1": tasks by node. 0 where the text does not say.
int count_of_node(const std::string& counts, int node) {
  for (size_t at = 0; at < counts.size();) {
    const std::string part = counts.substr(at, counts.find(',', at) - at);
    const size_t times = part.find("(x");
    const int repeats = times == std::string::npos ? 1 : std::atoi(part.c_str() + times + 2);
    if (node < repeats) return std::atoi(part.c_str());
    node -= repeats;
    at += part.size() + 1;
  }
  return 0;
}

}  // namespace

std::optional<SlurmStep> slurm_step() {
  const char* id = first_set({"SLURM_STEP_ID"});
  if (!id || !first_set({"SLURM_PROCID"}) || std::strtoull(id, nullptr, 10) >= kOwnSteps)
    return std::nullopt;
  SlurmStep step;
  // The second is the allocation's in shells of salloc that are steps, older versions lack the
  // first.
  const char* size = first_set({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, &step.source);
  if (!size) return std::nullopt;
  step.size = std::atoi(size);
  step.rank = number("SLURM_PROCID", 0);
  step.local_rank = number("SLURM_LOCALID", 0);
  const char* counts = first_set({"SLURM_STEP_TASKS_PER_NODE"});
  step.local_size = counts ? count_of_node(counts, number("SLURM_NODEID", 0)) : 0;
  if (step.local_size < 1) step.local_size = step.size;
  return step;
}

}  // namespace catena
