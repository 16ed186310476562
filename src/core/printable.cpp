#include "catena/core/printable.h"

#include <cstddef>

namespace catena {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

bool continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// The length of the well-formed and printable character at `at`; 0: there is none.
std::size_t character_at(std::string_view text, std::size_t at) {
  const unsigned char first = byte_at(text, at), second = byte_at(text, at + 1);
  if (first < 0x80) return first >= 0x20 && first != 0x7F;
  if (first < 0xC2 || first > 0xF4 || !continues(second)) return 0;
  // U+0080 to U+009F are control characters, too.
  if (first < 0xE0) return first == 0xC2 && second < 0xA0 ? 0 : 2;
  if (!continues(byte_at(text, at + 2))) return 0;
  // Overlong forms, surrogates, and code points above U+10FFFF.
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
  if (first < 0xF0) return 3;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
  return continues(byte_at(text, at + 3)) ? 4 : 0;
}

std::string escaped(std::string_view text, std::string_view kept) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const bool is_kept = kept.find(text[at]) != kept.npos;
    const std::size_t length = is_kept ? 1 : character_at(text, at);
    if (length > 0) {
      safe.append(text.substr(at, length));
      at += length;
      continue;
    }
    const unsigned char byte = byte_at(text, at++);
    safe.append("\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
  }
  return safe;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, "\n\t"); }
std::string printable_line(std::string_view text) { return escaped(text, ""); }

}  // namespace catena
