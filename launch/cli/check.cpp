#include "cli/check.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/text.h"
#include "catena/core/printable.h"
#include "cli/network_check.h"

namespace catena::launch {
namespace {

using State = CheckItem::State;

constexpr Probe kProbes[] = {{"host", probe_host},
                             {"/dev/shm", probe_shared_memory},
                             {"locked memory", probe_locked_memory},
                             {"GPUs", probe_gpus},
                             {"starter", probe_starter},
                             {"mpicxx", probe_mpi_compiler},
                             {"vendor libraries", probe_vendor_libraries},
                             {"libcatena", probe_libcatena},
                             {"plug-ins", probe_plugins},
                             {"kernels", probe_kernels},
                             {"kernel cache", probe_kernel_cache},
                             {"Fashion-MNIST", probe_dataset}};

// Of the command line: those of -H or --hostfile, or the word behind --check.
std::vector<Host> hosts_to_check(const JobSpec& job) {
  if (job.program.empty()) return job.hosts;
  const std::string list = join(job.program, ",");
  for (const std::string& word : job.program)
    if (word.starts_with('-'))
      throw UserError("--check " + list + ": '" + word +
                      "' is not a host; options go before the hosts: catena-run --timeout 5 "
                      "--check node1,node2");
  if (list.find('/') != std::string::npos)
    throw UserError("--check " + list + ": expected hosts, such as node1,node2, or nothing");
  return parse_host_list(list);
}

}  // namespace

CheckItems run_probes(const CheckContext& context, const std::vector<std::string_view>& names) {
  CheckItems items;
  for (const Probe& probe : kProbes) {
    const bool named = std::find(names.begin(), names.end(), probe.name) != names.end();
    if (!names.empty() && !named) continue;
    for (CheckItem& item : probe.run(context)) items.push_back(std::move(item));
  }
  return items;
}

std::string format_check(const CheckItems& items) {
  std::string text;
  std::set<std::string> packages;
  std::size_t width = 0;
  for (const CheckItem& item : items) width = std::max(width, item.name.size());
  for (const CheckItem& item : items) {
    const char* state = item.state == State::good     ? "ok       "
                        : item.state == State::absent ? "-        "
                                                      : "MISSING  ";
    text.append(state).append(item.name).append(width + 2 - item.name.size(), ' ');
    text.append(item.text).append("\n");
    for (const std::string& package : split_words(item.packages)) packages.insert(package);
  }
  if (packages.empty()) return text;
  const std::vector<std::string> names(packages.begin(), packages.end());
  text.append("\nTo install what is missing:\n  ").append(geteuid() == 0 ? "" : "sudo ");
  return text.append("apt-get install ").append(join(names, " ")).append("\n");
}

int run_check(const JobSpec& job) {
  if (const std::vector<Host> hosts = hosts_to_check(job); !hosts.empty()) {
    JobSpec named = job;
    named.hosts = hosts;
    return run_network_check(named);
  }
  const CheckItems items = run_probes(make_check_context(job));
  std::fputs(printable(format_check(items)).c_str(), stdout);
  const bool missing = std::any_of(items.begin(), items.end(), [](const CheckItem& item) {
    return item.state == State::missing;
  });
  return missing ? 1 : 0;
}

}  // namespace catena::launch
