// /dev/shm, through which the ranks of a host exchange data.
#pragma once

#include <string>

namespace catena::launch {

// Why it has no room for so many ranks of this host, with what to do; "": it has.
std::string shared_memory_problem(int ranks);
// The same of one of this size, in bytes.
std::string shared_memory_problem(double size, double free, int ranks);

}  // namespace catena::launch
