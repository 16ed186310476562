// catena-run --check: what this machine and this build offer, and how to install what is missing.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace catena::launch {

// One line of the answer.
struct CheckItem {
  // missing: would be of use here; absent: is not there and nothing on this machine asks for it.
  enum class State { good, absent, missing };
  State state = State::good;
  std::string name;      // "NCCL"
  std::string text;      // "2.21.5, /usr/lib/x86_64-linux-gnu/libnccl.so.2"
  std::string packages;  // of apt, that put a missing thing right: "libnccl2 libnccl-dev"
};

// The items of --check by themselves.
std::vector<CheckItem> check_machine();
std::vector<CheckItem> check_gpus();
std::vector<CheckItem> check_libraries(bool has_gpus);
std::vector<CheckItem> check_mpi(const std::string& mpirun);
// The first of the folders that has libcatena says whether each plug-in can be used, and where GPU
// kernels come from. Without libcatena plug-ins are only opened. What a GPU plug-in says on a
// machine without GPUs is no complaint.
std::vector<CheckItem> check_plugins(const std::vector<std::string>& folders, bool has_gpus);
// Of the kernel cache: what it holds, how often it was asked and could answer.
CheckItem check_kernel_cache();
std::vector<CheckItem> check_files();

// Lines for all items, then the one command that installs everything missing.
std::string format_check(const std::vector<CheckItem>& items);

// Prints everything; the exit code is 1 when something is missing.
int run_check(const Options& options);

}  // namespace catena::launch
