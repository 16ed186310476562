// The kernel cache on disk: compiled kernels that are not in the bundle, kept for later runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "backends/cuda/jit/compile/hash.h"
#include "core/standard_folders.h"

namespace catena::jit {

class DiskCache {
 public:
  // With an empty folder name nothing is kept.
  explicit DiskCache(std::string folder) : folder_(std::move(folder)) {}

  // The value of `key`, if it exists and is complete. A damaged file counts as absent.
  bool read(const Hash128& key, std::string& value) const;
  // read(), or else the result of `make`, which is stored. If several processes (or threads) ask
  // for one key at a time, one calls `make` and the others wait for its file. If the folder cannot
  // be written, each makes its own. Sets *made.
  std::string get(const Hash128& key, const std::function<std::string()>& make, bool* made) const;
  const std::string& folder() const { return folder_; }

  // How many values all processes have found and made so far. Zeros if the folder cannot be
  // written.
  using Uses = CacheUses;
  Uses uses() const { return read_cache_uses(folder_); }

 private:
  bool find(const Hash128& key, std::string& value) const;
  void count(uint64_t Uses::*which) const;
  std::string path(const Hash128& key, const char* suffix) const;
  void write(const Hash128& key, const std::string& value) const;

  std::string folder_;
};

}  // namespace catena::jit
