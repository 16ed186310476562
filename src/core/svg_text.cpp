#include "core/svg_text.h"

#include <cmath>
#include <vector>

#include "core/readable_numbers.h"
#include "core/utf8.h"

namespace catena {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";
constexpr const char* kEllipsis = "\xe2\x80\xa6";

// Bytes of the whole character at the front that XML allows; 0: there is none.
size_t whole_character(std::string_view text) {
  const auto [bytes, code] = first_character(text);
  return code < 0x20 || (code & 0xfffe) == 0xfffe ? 0 : bytes;
}

std::string xml_text(std::string_view character) {
  switch (character[0]) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    default: return std::string(character);
  }
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const size_t length = whole_character(text);
    result.push_back(length == 0 ? kReplacement : xml_text(text.substr(0, length)));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace

std::string svg_escaped(std::string_view text) { return svg_shortened(text, text.size()); }

std::string svg_shortened(std::string_view text, size_t most) {
  const std::vector<std::string> all = characters(text);
  const size_t tail = all.size() > most ? most / 2 : all.size();
  const size_t head = all.size() > most ? most - tail - 1 : 0;
  std::string result;
  for (size_t i = 0; i < head; ++i) result += all[i];
  if (all.size() > most) result += kEllipsis;
  for (size_t i = all.size() - tail; i < all.size(); ++i) result += all[i];
  return result;
}

std::string svg_number(double value) {
  const auto tenths = std::llround(value * 10);
  return fixed_digits(double(tenths) / 10, tenths % 10 == 0 ? 0 : 1);
}

}  // namespace catena
