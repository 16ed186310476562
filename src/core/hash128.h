// A 128-bit content hash for cache keys: two rounds of FNV-1a with different seeds and a final mix.
// It guards against accidents (stale files, torn writes), not against attackers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace catena {

struct Hash128 {
  uint64_t high = 0, low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

inline uint64_t mix64(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

inline Hash128 hash128(std::string_view data) {
  uint64_t a = 0xcbf29ce484222325u, b = 0x9ae16a3b2f90404fu;
  for (const unsigned char c : data) {
    a = (a ^ c) * 0x100000001b3u;
    b = (b ^ c) * 0x9e3779b97f4a7c15u;
  }
  return {mix64(a ^ data.size()), mix64(b + data.size())};
}

inline std::string to_hex(const Hash128& hash) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (const uint64_t half : {hash.high, hash.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text.push_back(digits[(half >> shift) & 15]);
  }
  return text;
}

}  // namespace catena
