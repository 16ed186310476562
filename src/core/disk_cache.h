// Values that are slow to make, kept on disk for later runs and other processes: compiled kernels
// that are not in the bundle, and choices of libraries.
//
// In a folder that others may write, too: only files that this user or root has made are used, and
// only for the key that they were made for, and no lock of another user is waited for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/hash128.h"
#include "core/standard_folders.h"

namespace catena {

class DiskCache {
 public:
  // The values of a kind. With an empty folder name nothing is kept.
  explicit DiskCache(std::string folder, const CacheKind& kind = kKernelCache)
      : folder_(std::move(folder)), kind_(kind) {}

  // Makes a value; the empty one is not kept.
  using Make = std::function<std::string()>;
  // Whether a value can be used.
  using Accept = std::function<bool(const std::string& value)>;

  // The value of `key`, if it exists, is complete and, with `accept`, is accepted. A damaged file
  // counts as absent.
  bool read(const Hash128& key, std::string& value, const Accept& accept = nullptr) const;
  // read(), or else the result of `make`, which is stored and replaces a damaged or refused value.
  // If several processes (or threads) ask for one key at a time, one calls `make` and the others
  // wait for its file. If the folder cannot be written, each makes its own. Sets *made.
  std::string get(const Hash128& key, const Make& make, bool* made,
                  const Accept& accept = nullptr) const;
  const std::string& folder() const { return folder_; }

  // How many values all processes have found and made so far. Zeros if the folder cannot be
  // written.
  using Uses = CacheUses;
  Uses uses() const { return read_cache_uses(folder_, kind_); }

 private:
  bool find(const Hash128& key, std::string& value) const;
  void count(uint64_t Uses::*which) const;
  std::string values_folder() const { return folder_ + "/" + kind_.folder; }
  std::string path(const Hash128& key, const char* suffix) const;
  void write(const Hash128& key, const std::string& value) const;

  std::string folder_;
  CacheKind kind_;
};

}  // namespace catena
