// catena-run --status: what the ranks of running jobs are doing.
#pragma once

#include <string>
#include <vector>

namespace catena::launch {

// Prints the state of each rank of the one job of this user that has ranks on this machine, or that
// `wanted` names: a job's number, or the number of a process of it. Several jobs are listed when
// `wanted` is empty. Reads /proc and the status boards alone, so no job notices. Returns the exit
// code: 1 when there is no such job. Throws UserError for more than one word.
int run_status(const std::vector<std::string>& wanted);

}  // namespace catena::launch
