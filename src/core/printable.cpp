#include "catena/core/printable.h"

#include <cstddef>

#include "core/utf8.h"

namespace catena {
namespace {

// The length of the well-formed and printable character at the front; 0: there is none. U+0080 to
// U+009F are control characters, too.
std::size_t printable_character(std::string_view text) {
  const auto [bytes, code] = first_character(text);
  return code < 0x20 || (code >= 0x7F && code < 0xA0) ? 0 : bytes;
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
