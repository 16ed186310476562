// The kernel cache on disk: compiled kernels that are not in the bundle, kept between runs.
#pragma once

#include <functional>
#include <string>

#include "backends/cuda/jit/compile/hash.h"

namespace catena::jit {

// CATENA_CACHE_DIR, else $XDG_CACHE_HOME/catena, else ~/.cache/catena; "" when there is none.
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

 private:
  std::string path(const Hash128& key, const char* suffix) const;
  void write(const Hash128& key, const std::string& value) const;

  std::string folder_;
};

}  // namespace catena::jit
