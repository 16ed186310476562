// The kernel bundle: one indexed file of cubins for each architecture. The build makes it; the
// process maps it into memory and reads single entries. Entries are found by kernel_key(), so
// entries of an outdated bundle are simply not found.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/hash128.h"

namespace catena::jit {

class Bundle {
 public:
  ~Bundle();
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  // Null if there is no such file or it is incomplete; `why` then says so.
  static std::unique_ptr<Bundle> open(const std::string& path, std::string* why = nullptr);
  // The cubin of a key; the bytes live as long as the bundle.
  std::optional<std::string_view> find(const Hash128& key) const;
  size_t size() const { return count_; }

 private:
  Bundle() = default;
  struct Entry {
    Hash128 key;
    uint64_t offset, bytes;
  };
  const Entry* entries() const;

  void* data_ = nullptr;
  size_t bytes_ = 0;
  size_t count_ = 0;
};

// Writes the file under another name, then renames it. Throws IoError.
void write_bundle(const std::string& path, const std::map<Hash128, std::string>& cubins);

}  // namespace catena::jit
