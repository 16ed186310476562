// Form of values that travel between processes: words "key=value". The words of a job, the reports
// of ranks and their nested lists are all written and read here and nowhere else.
//
// A type lists its fields once, in a function that is found next to it:
//   template <typename Visit> void each_field(const Point*, Visit&& visit) {
//     visit("x", &Point::x);
//     visit("y", &Point::y, Field::always);
//   }
// Fields that have their default value are not written, unless they are marked `always`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace catena::launch {

enum class Field { unless_default, always };

// '%', control characters and every character of `extra` become %XX.
std::string percent_encode(std::string_view text, std::string_view extra = "");
std::string percent_decode(std::string_view text);

// The text of one value, not yet encoded.
std::string value_text(const std::string& value);
std::string value_text(bool value);
std::string value_text(int value);
std::string value_text(std::uint64_t value);
std::string value_text(double value);
std::string value_text(const std::map<std::string, std::string>& value);
void read_value(const std::string& text, std::string& value);
void read_value(const std::string& text, bool& value);
void read_value(const std::string& text, int& value);
void read_value(const std::string& text, std::uint64_t& value);
void read_value(const std::string& text, double& value);
void read_value(const std::string& text, std::map<std::string, std::string>& value);

template <typename Value>
std::string value_text(const std::optional<Value>& value) {
  return value ? value_text(*value) : "";
}
template <typename Value>
void read_value(const std::string& text, std::optional<Value>& value) {
  read_value(text, value.emplace());
}

// Of enumerations, their number.
template <typename Value>
requires std::is_enum_v<Value> std::string value_text(Value value) {
  return value_text(static_cast<int>(value));
}
template <typename Value>
requires std::is_enum_v<Value>
void read_value(const std::string& text, Value& value) {
  int number = 0;
  read_value(text, number);
  value = static_cast<Value>(number);
}

template <typename Record>
std::vector<std::string> to_words(const Record& record) {
  const Record defaults;
  std::vector<std::string> words;
  each_field(&record, [&](const char* key, auto member, Field when = Field::unless_default) {
    if (when == Field::unless_default && record.*member == defaults.*member) return;
    words.push_back(std::string(key) + "=" + percent_encode(value_text(record.*member)));
  });
  return words;
}

// False when the record has no such field.
template <typename Record>
bool read_word(std::string_view word, Record& record) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  bool known = false;
  each_field(&record, [&](const char* key, auto member, Field = Field::unless_default) {
    if (known || word.substr(0, equals) != key) return;
    known = true;
    read_value(percent_decode(word.substr(equals + 1)), record.*member);
  });
  return known;
}

}  // namespace catena::launch
