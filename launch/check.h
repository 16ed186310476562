// catena-run --check: what this machine and this build offer, and how to install what is missing.
#pragma once

#include <string>
#include <vector>

#include "options.h"

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

// What only libcatena knows (which plug-ins load and why not, hits and misses of the kernel
// cache). A build that links libcatena sets this pointer before main, as a null pointer leaves
// these items to what can be seen from outside.
using LibraryCheck = std::vector<CheckItem> (*)();
extern LibraryCheck library_check;

// The items of --check by themselves; `plugin_folders` are searched for libcatena_*.so.
std::vector<CheckItem> check_machine();
std::vector<CheckItem> check_gpus();
std::vector<CheckItem> check_libraries(bool has_gpus);
std::vector<CheckItem> check_mpi(const std::string& mpirun);
std::vector<CheckItem> check_plugins(const std::vector<std::string>& plugin_folders);
std::vector<CheckItem> check_files();

// Lines for all items, then the one command that installs everything missing.
std::string format_check(const std::vector<CheckItem>& items);

// Prints everything; the exit code is 1 when something is missing.
int run_check(const Options& options);

}  // namespace catena::launch
