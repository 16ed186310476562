// The nodes of an allocation of Slurm that ranks can still be started on.
//
// Of an allocation that survives its nodes (salloc or sbatch --no-kill) Slurm takes away those that
// it finds down. The variables of the environment still name all of them.
#pragma once

#include <string>
#include <vector>

namespace catena::launch {

// "n[1-2]" of the answer to scontrol show job; "" when it does not say.
std::string parse_job_nodes(const std::string& answer);

// Of the answer to scontrol -o show node: the names of those that are not down, failing, powered
// off or silent. Drained ones finish what they have.
std::vector<std::string> parse_usable_nodes(const std::string& answer);

// Asks Slurm. Empty when there is no scontrol, or when the controller does not answer.
std::vector<std::string> usable_nodes_of(const std::string& job);

}  // namespace catena::launch
