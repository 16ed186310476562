// Reads whole files.
#pragma once

#include <fstream>
#include <string>

namespace catena {

// Appends the bytes of a file to `bytes`. False, with the reason in errno, if it cannot be opened
// or read, as a folder. Iterators of the stream's buffer would throw then, and << would say the
// same of an empty file.
inline bool read_file(const std::string& path, std::string& bytes) {
  std::ifstream file(path, std::ios::binary);
  char block[4096];
  while (file.read(block, sizeof(block)) || file.gcount() > 0)
    bytes.append(block, static_cast<size_t>(file.gcount()));
  return file.is_open() && !file.bad();
}

}  // namespace catena
