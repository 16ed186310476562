#include "core/environment.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "catena/core/log.h"

namespace catena {
namespace {

std::string_view text_of(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

const char* first_set(std::initializer_list<const char*> names, std::string* which) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    if (which) *which = name;
    return value;
  }
  return nullptr;
}

bool switch_from_environment(const char* name, bool otherwise) {
  const std::string_view text = text_of(name);
  const std::string word = in_lower_case(text);
  if (word.empty()) return otherwise;
  if (is_one_of(word, {"1", "on", "true", "yes"})) return true;
  if (is_one_of(word, {"0", "off", "false", "no"})) return false;
  logging::warning(name, "='", text,
                   "' is neither 1 (on, true, yes) nor 0 (off, false, no); using ",
                   otherwise ? 1 : 0);
  return otherwise;
}

std::optional<int> count_from_environment(const char* name) {
  const std::string_view text = text_of(name), first = text.substr(0, text.find(','));
  if (text.empty()) return {};
  int count = 0;
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), count);
  if (error == std::errc() && end == first.data() + first.size() && count > 0) return count;
  logging::warning(name, "='", text, "' is not a whole number above 0; it is ignored");
  return {};
}

std::optional<double> positive_number(std::string_view text) {
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || !(value > 0)) return {};
  return value;
}

}  // namespace catena
