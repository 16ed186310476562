#include "core/readable_numbers.h"

#include <charconv>
#include <cmath>

namespace catena {

std::string grouped(int64_t n) {
  std::string text = std::to_string(n);
  const int64_t sign = n < 0 ? 1 : 0;
  for (int64_t at = int64_t(text.size()) - 3; at > sign; at -= 3) text.insert(size_t(at), ",");
  return text;
}

std::string fixed_digits(double value, int digits) {
  char text[400];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits);
  return {text, end.ptr};
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = double(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1023.95 && unit < 5; ++unit) value /= 1024;
  return fixed_digits(double(std::llround(value * 10)) / 10, 1) + " " + units[unit];
}

}  // namespace catena
