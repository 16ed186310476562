// A file mapped into memory.
#pragma once

#include <cstdint>
#include <string>

#include "catena/array/io.h"

namespace catena::io {

// Maps a whole regular file; the destructor unmaps it. IoErrors name the path and the system's
// reason.
class MappedFile {
 public:
  MappedFile(const std::string& path, MmapMode mode);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  char* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  std::string path_;
  char* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace catena::io
