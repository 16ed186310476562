#include "catena/core/printable.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "core/utf8.h"

namespace catena {
namespace {

struct Range {
  uint32_t first, last;
};

// Control characters, and what shows nothing itself but can make a text look like another one.
// Combining marks stay, and so do variation selectors, which are such marks.
constexpr Range kUnprintable[] = {
    {0x00, 0x1F},       // ASCII's controls
    {0x7F, 0x9F},       // delete, and Unicode's controls
    {0xAD, 0xAD},       // soft hyphen
    {0x61C, 0x61C},     // Arabic letter mark
    {0x180E, 0x180E},   // Mongolian vowel separator
    {0x200B, 0x200F},   // no width, joiners, marks of direction
    {0x2028, 0x202E},   // ends of lines and paragraphs; embeddings and overrides of direction
    {0x2060, 0x206F},   // word joiner, invisible operators, isolates of direction
    {0xFEFF, 0xFEFF},   // byte order mark
    {0xFFF9, 0xFFFB},   // marks of annotations
    {0xE0000, 0xE007F}  // tags
};

bool is_printable(uint32_t code) {
  return std::none_of(std::begin(kUnprintable), std::end(kUnprintable),
                      [&](Range range) { return range.first <= code && code <= range.last; });
}

// The length of the well-formed and printable character at the front; 0: there is none.
std::size_t printable_character(std::string_view text) {
  const auto [bytes, code] = first_character(text);
  return is_printable(code) ? bytes : 0;
}

std::string escaped(std::string_view text, std::string_view kept) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const bool is_kept = kept.find(text[at]) != kept.npos;
    const std::size_t length = is_kept ? 1 : printable_character(text.substr(at));
    if (length > 0) {
      safe.append(text.substr(at, length));
      at += length;
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[at++]);
    safe.append("\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
  }
  return safe;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, "\n\t"); }
std::string printable_line(std::string_view text) { return escaped(text, ""); }

}  // namespace catena
