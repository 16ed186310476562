#include "plan/placement.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <vector>

#include "base/text.h"

namespace catena::launch {
namespace {

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

cpu_set_t both(const cpu_set_t& a, const cpu_set_t& b) {
  cpu_set_t result;
  CPU_AND(&result, &a, &b);
  return result;
}

// Whole processors of the cgroup's quota; 0 when there is no limit.
int cgroup_cpus() {
  // Version 2, then version 1.
  const std::vector<std::string> both_numbers = split_words(read_line("/sys/fs/cgroup/cpu.max"));
  double quota = 0;
  double period = 0;
  if (both_numbers.size() == 2 && both_numbers[0] != "max") {
    quota = parse_number(both_numbers[0]).value_or(0);
    period = parse_number(both_numbers[1]).value_or(0);
  } else {
    quota = parse_number(read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")).value_or(0);
    period = parse_number(read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us")).value_or(0);
  }
  return quota > 0 && period > 0 ? std::max(1, static_cast<int>(std::ceil(quota / period))) : 0;
}

std::vector<cpu_set_t> numa_nodes() {
  std::vector<cpu_set_t> nodes;
  const cpu_set_t allowed = allowed_cpus();
  for (int node = 0;; ++node) {
    const std::string list =
        read_line("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
    if (list.empty()) return nodes;
    const cpu_set_t cpus = both(parse_cpu_list(list), allowed);
    if (CPU_COUNT(&cpus) > 0) nodes.push_back(cpus);
  }
}

}  // namespace

cpu_set_t parse_cpu_list(const std::string& text) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const std::string& part : split(trim(text), ',')) {
    const std::size_t dash = part.find('-');
    const auto first = parse_number(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_number(part.substr(dash + 1));
    if (!first || !last) continue;
    for (int cpu = *first; cpu <= *last && cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &cpus);
  }
  return cpus;
}

cpu_set_t allowed_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof(cpus), &cpus);
  return cpus;
}

int usable_cores() {
  const cpu_set_t allowed = allowed_cpus();
  std::set<std::string> cores;  // a core is known by the list of its hardware threads
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string threads = read_line("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                                          "/topology/thread_siblings_list");
    cores.insert(threads.empty() ? "cpu " + std::to_string(cpu) : threads);
  }
  const int count = std::max(1, static_cast<int>(cores.size()));
  const int granted = cgroup_cpus();
  return granted > 0 ? std::min(count, granted) : count;
}

int threads_per_rank(int cores, int ranks_on_host) {
  return std::max(1, cores / std::max(1, ranks_on_host));
}

cpu_set_t cpus_near_gpu(const std::string& bus_id, const std::string& sysfs) {
  const cpu_set_t allowed = allowed_cpus();
  if (bus_id.empty()) return allowed;
  const cpu_set_t local =
      parse_cpu_list(read_line(sysfs + "/bus/pci/devices/" + bus_id + "/local_cpulist"));
  const cpu_set_t cpus = both(local, allowed);
  return CPU_COUNT(&cpus) > 0 ? cpus : allowed;
}

cpu_set_t cpus_of_cpu_rank(int local_rank, int local_size) {
  const std::vector<cpu_set_t> nodes = numa_nodes();
  const int count = static_cast<int>(nodes.size());
  if (count < 2 || local_size < count) return allowed_cpus();
  const int node = static_cast<int>(static_cast<long>(local_rank) * count / local_size);
  return nodes[static_cast<std::size_t>(std::min(node, count - 1))];
}

}  // namespace catena::launch
