// Compiling many programs at once, each in one of several processes.
#pragma once

#include <map>
#include <span>
#include <string>

#include "backends/cuda/jit/compile/disk_cache.h"
#include "backends/cuda/jit/tool/bundle_list.h"

namespace catena::jit {

struct CompileJobs {
  int arch = 0;
  int processes = 1;
  const DiskCache* cache = nullptr;  // looked into first and filled, if given
  std::string scratch;               // begin of the names of temporary files
  bool progress = false;             // counts on standard error
};
struct Compiled {
  std::map<Hash128, std::string> cubins;  // by kernel_key()
  size_t made = 0;                        // of them compiled now, not found in the cache
};
// The programs, each once. Error when one cannot be compiled; the reason stands on standard error.
Compiled compile_programs(const CompileJobs& jobs, std::span<const BundleItem* const> items);

}  // namespace catena::jit
