// Compiling with the cache of the build tree, which the build's bundles fill as well: an unchanged
// text is compiled once.
#pragma once

#include "backends/cuda/jit/compile/nvrtc.h"
#include "core/disk_cache.h"

namespace catena::jit {

// As compile().
inline std::string cached_compile(const std::string& source, int arch, const char* what) {
  static const DiskCache cache(CATENA_KERNEL_CACHE);
  bool made = false;
  return cache.get(
      disk_key(kernel_key(source, arch)), [&] { return compile(source, arch, what); }, &made);
}

}  // namespace catena::jit
