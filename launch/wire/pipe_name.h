// Name of a pipe between processes of one machine: the descriptor of the process that made it, as
// /proc has it, the number that the kernel gave it, and that run of the kernel. In a container with
// other process numbers, or on another machine, these keep the name from leading to somebody else's
// pipe.
#pragma once

#include <string>

#include "base/process.h"

namespace catena::launch {

// "/proc/12/fd/3:4567:" and the kernel for a descriptor of this process; "" when it is not a pipe.
std::string name_pipe(int descriptor);

// The pipe of that name, for writing without waiting. Not open when there is none, or none that can
// be seen from here.
Descriptor open_pipe(const std::string& name);

}  // namespace catena::launch
