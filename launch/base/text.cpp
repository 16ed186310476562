#include "base/text.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace catena::launch {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  constexpr std::string_view kBlanks = " \t\r\n";
  std::size_t begin = text.find_first_not_of(kBlanks);
  while (begin != std::string_view::npos) {
    const std::size_t end = text.find_first_of(kBlanks, begin);
    words.emplace_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    begin = end == std::string_view::npos ? end : text.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::vector<std::string> take_lines(std::string& rest, std::string_view bytes) {
  rest += bytes;
  std::vector<std::string> lines = split(rest, '\n');
  rest = std::move(lines.back());
  lines.pop_back();
  return lines;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool contains_any(const std::string& text, std::span<const char* const> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](const char* phrase) { return text.find(phrase) != std::string::npos; });
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) text += separator;
    text += part;
  }
  return text;
}

std::optional<int> parse_number(std::string_view text) {
  int value = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<double> parse_seconds(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value > 0)) return std::nullopt;
  return value;
}

std::string format_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", seconds);
  return text;
}

std::string shell_quote(const std::string& text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%^";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char character : text) {
    if (character == '\'')
      quoted += "'\\''";
    else
      quoted += character;
  }
  return quoted + "'";
}

std::string shell_quote(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_quote(word));
  return join(quoted, " ");
}

std::string shown_of_line(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t at = line.rfind('\r');
  std::string shown(at == std::string_view::npos ? line : line.substr(at + 1));
  constexpr std::string_view kClear = "\x1b[K";
  for (std::size_t clear = shown.find(kClear); clear != std::string::npos;
       clear = shown.find(kClear, clear))
    shown.erase(clear, kClear.size());
  return shown;
}

std::string last_lines_of(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  const std::size_t begin = text.size() - most;
  const std::size_t line = text.find('\n', begin - 1);
  return text.substr(line == std::string::npos || line + 1 >= text.size() ? begin : line + 1);
}

std::string exception_text(const std::string& standard_error) {
  const std::string mark = "terminate called after throwing an instance of '";
  const std::size_t at = standard_error.rfind(mark);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + mark.size();
  const std::size_t end = standard_error.find("'\n", begin);
  if (end == std::string::npos) return "";
  const std::string type = standard_error.substr(begin, end - begin);
  const std::string what = "  what():  ";
  if (standard_error.compare(end + 2, what.size(), what) != 0) return type;
  const std::size_t text = end + 2 + what.size();
  return type + ": " + standard_error.substr(text, standard_error.find('\n', text) - text);
}

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "localhost";
  return name;
}

std::string size_text(double bytes) {
  constexpr double kKibibyte = 1024, kMebibyte = 1024 * kKibibyte, kGibibyte = 1024 * kMebibyte;
  char text[40];
  if (bytes < kMebibyte)
    std::snprintf(text, sizeof(text), "%.0f KiB", bytes / kKibibyte);
  else if (bytes < kGibibyte)
    std::snprintf(text, sizeof(text), "%.1f MiB", bytes / kMebibyte);
  else
    std::snprintf(text, sizeof(text), "%.1f GiB", bytes / kGibibyte);
  return text;
}

}  // namespace catena::launch
