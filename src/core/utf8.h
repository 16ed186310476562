// Characters of UTF-8 text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace catena {

struct Utf8Character {
  std::size_t bytes;  // 0: the text begins with no well-formed character
  uint32_t code;
};

// The first character of a text that is not empty. Overlong forms, surrogates and codes above
// U+10FFFF are not well-formed (RFC 3629).
inline Utf8Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return uint32_t(static_cast<unsigned char>(text[i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {1, first};
  if (first < 0xC2 || first > 0xF4) return {0, 0};
  const std::size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (bytes > text.size()) return {0, 0};
  uint32_t code = first & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  if (code < kSmallest[bytes] || is_surrogate || code > 0x10FFFF) return {0, 0};
  return {bytes, code};
}

}  // namespace catena
