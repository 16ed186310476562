#include "wire/fields.h"

#include <charconv>
#include <cstdlib>

#include "base/text.h"

namespace catena::launch {

std::string percent_encode(std::string_view text, std::string_view extra) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    const bool plain = character != '%' && byte >= 0x20 && byte != 0x7f &&
                       extra.find(character) == std::string_view::npos;
    if (plain) {
      encoded += character;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

std::string percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr ==
            text.data() + i + 3) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::string value_text(const std::string& value) { return value; }
std::string value_text(bool value) { return value ? "1" : "0"; }
std::string value_text(int value) { return std::to_string(value); }
std::string value_text(std::uint64_t value) { return std::to_string(value); }
std::string value_text(double value) {  // every digit, so that the same number is read
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

// "name=text name=text"
std::string value_text(const std::map<std::string, std::string>& value) {
  std::vector<std::string> entries;
  for (const auto& [name, text] : value)
    entries.push_back(percent_encode(name, " =") + "=" + percent_encode(text, " "));
  return join(entries, " ");
}

void read_value(const std::string& text, std::string& value) { value = text; }
void read_value(const std::string& text, bool& value) { value = text == "1"; }

void read_value(const std::string& text, int& value) {
  value = static_cast<int>(std::strtol(text.c_str(), nullptr, 10));
}

void read_value(const std::string& text, std::uint64_t& value) {
  value = std::strtoull(text.c_str(), nullptr, 10);
}

void read_value(const std::string& text, double& value) {
  std::from_chars(text.data(), text.data() + text.size(), value);
}

void read_value(const std::string& text, std::map<std::string, std::string>& value) {
  value.clear();
  for (const std::string& entry : split_words(text)) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    value[percent_decode(entry.substr(0, equals))] = percent_decode(entry.substr(equals + 1));
  }
}

}  // namespace catena::launch
