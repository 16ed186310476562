// catena-run --check: what this machine and this build offer, and how to install what is missing.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace catena::launch {

// One line of the answer.
struct CheckItem {
  enum class State { good, note, missing };
  State state = State::good;
  std::string name;    // "NCCL"
  std::string text;    // "2.21.5, /usr/lib/x86_64-linux-gnu/libnccl.so.2"
  std::string remedy;  // "apt-get install libnccl2", "" when there is nothing to do
};

// What only libcatena knows (which plug-ins load, hits and misses of the kernel cache). A build
// that links it defines this function in a file of its own and assigns it before run_check; while
// it is null these items are left to what can be seen from outside.
using LibraryCheck = std::vector<CheckItem> (*)();
extern LibraryCheck library_check;

// Prints everything; the exit code is 0 unless something that every program needs is missing.
int run_check(const Options& options);

}  // namespace catena::launch
