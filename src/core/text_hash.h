// A hash of a text that is the same in every process: ranks compare theirs.
#pragma once

#include <cstdint>
#include <string_view>

namespace catena {

// FNV-1a, 64 bits.
constexpr uint64_t text_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace catena
