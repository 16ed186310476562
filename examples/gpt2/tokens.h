// Tokens of texts, and windows of them as samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catena/datasets/dataset.h"

namespace gpt2 {

// The bytes of the files, one behind the other: a 1-d array of uint8 on the CPU. IoError for a file
// that is missing, cannot be read or is empty.
catena::Array read_bytes(const std::vector<std::string>& files);
// A file of token numbers, uint16, the low byte first: a 1-d array on the CPU that reads the file
// where it is used. IoError as above, and for half a number; ValueError for a number that is not
// below `vocabulary`.
catena::Array map_tokens(const std::string& file, int64_t vocabulary);

// A text in windows that follow each other. Sample i is one array: the tokens from i * length on,
// length + 1 of them, so that each but the last has one that follows. What does not fill a window
// is left out; ValueError when that is everything, which names `what`.
class Windows final : public catena::datasets::Dataset {
 public:
  Windows(const catena::Array& tokens, int64_t length, const std::string& what,
          int64_t most_windows = -1);
  void gather(std::span<const int64_t> positions,
              std::span<const catena::Array> out) const override;

 private:
  catena::Array tokens_;
  int64_t length_;
};

}  // namespace gpt2
