// Placement of a rank: its processor cores and number of threads.
#pragma once

#include <sched.h>

#include <string>

namespace catena::launch {

// "0-3,8,10-11" as the kernel writes lists of processors. Bad text gives an empty set.
cpu_set_t parse_cpu_list(const std::string& text);

// Processors this process may use.
cpu_set_t allowed_cpus();

// Physical cores among them (two hardware threads of a core count once), never more than the
// processor time that a container's cgroup grants, at least 1.
int usable_cores();

// max(1, cores / ranks)
int threads_per_rank(int cores, int ranks_on_host);

// The processors near a GPU ("0000:1b:00.0"), intersected with the allowed ones; the allowed ones
// when the kernel does not say or nothing would be left. Tests give another `sysfs`.
cpu_set_t cpus_near_gpu(const std::string& bus_id, const std::string& sysfs = "/sys");

// The processors of a CPU rank: ranks are dealt to the NUMA nodes in equal shares. With one node,
// or fewer ranks than nodes, all allowed ones.
cpu_set_t cpus_of_cpu_rank(int local_rank, int local_size);

}  // namespace catena::launch
