// catena-run --check: what this machine and this build offer, and how to install what is missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/probes.h"
#include "spec/job_spec.h"

namespace catena::launch {

// What the probes of these names find, in the order of the table; without names, of all.
std::vector<CheckItem> run_probes(const CheckContext& context,
                                  const std::vector<std::string_view>& names = {});

// Lines for all items, then the one command that installs everything missing.
std::string format_check(const std::vector<CheckItem>& items);

// Prints everything; the exit code is 1 when something is missing. With hosts (-H, --hostfile, or
// `--check node1,node2`, which comes as the program) their networks are tried instead, see
// cli/network_check.h.
int run_check(const JobSpec& job);

}  // namespace catena::launch
