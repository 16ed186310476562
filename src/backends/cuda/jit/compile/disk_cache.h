// The kernel cache on disk: compiled kernels that are not in the bundle, kept between runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "backends/cuda/jit/compile/hash.h"

namespace catena::jit {

// CATENA_CACHE_DIR, else CUPY_CACHE_DIR, else $XDG_CACHE_HOME/catena, else ~/.cache/catena; "" when
// there is none.
std::string default_cache_folder();

class DiskCache {
 public:
  // An empty folder name keeps nothing.
  explicit DiskCache(std::string folder) : folder_(std::move(folder)) {}

  // The value of `key` if it is there and whole; a damaged file counts as absent.
  bool read(const Hash128& key, std::string& value) const;
  // read(), else the result of `make`, which is stored. Of several processes (and threads) that ask
  // for one key at a time, one calls `make` and the others wait for its file. Where the folder
  // cannot be written, every one makes its own. Sets *made.
  std::string get(const Hash128& key, const std::function<std::string()>& make, bool* made) const;
  const std::string& folder() const { return folder_; }

  // How often values were found and made by all processes so far, kept in the file kernels/uses as
  // two 64-bit numbers. Zeros where the folder cannot be written.
  struct Uses {
    uint64_t hits = 0, misses = 0;
  };
  Uses uses() const;

 private:
  bool find(const Hash128& key, std::string& value) const;
  void count(uint64_t Uses::*which) const;
  std::string path(const Hash128& key, const char* suffix) const;
  void write(const Hash128& key, const std::string& value) const;

  std::string folder_;
};

}  // namespace catena::jit
