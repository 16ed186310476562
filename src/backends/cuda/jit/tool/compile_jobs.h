// Compiles many programs at once, in several processes.
#pragma once

#include <map>
#include <span>
#include <string>

#include "backends/cuda/jit/tool/bundle_list.h"
#include "core/disk_cache.h"

namespace catena::jit {

struct CompileJobs {
  int arch = 0;
  int processes = 1;
  const DiskCache* cache = nullptr;  // if given, it is searched first and filled
  std::string scratch;               // prefix of the names of temporary files
  bool progress = false;             // reports progress on standard error
};
struct Compiled {
  std::map<Hash128, std::string> cubins;  // by kernel_key()
  size_t made = 0;                        // compiled now, not found in the cache
};
// Compiles the programs, each once. Throws Error if one cannot be compiled; the reason is on
// standard error.
Compiled compile_programs(const CompileJobs& jobs, std::span<const BundleItem* const> items);

}  // namespace catena::jit
