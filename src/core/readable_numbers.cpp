#include "core/readable_numbers.h"

#include <charconv>
#include <cmath>
#include <iterator>

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

ByteUnit byte_unit(double bytes, double next) {
  constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t i = 0;
  double unit = 1;
  for (; i + 1 < std::size(kNames) && bytes >= next * unit; ++i) unit *= 1024;
  return {kNames[i], unit};
}

std::string bytes_text(int64_t bytes) {
  const ByteUnit unit = byte_unit(double(bytes), 1023.95);  // no "1024.0"
  if (unit.bytes == 1) return std::to_string(bytes) + " B";
  const double value = double(bytes) / unit.bytes;
  return fixed_digits(double(std::llround(value * 10)) / 10, 1) + " " + unit.name;
}

}  // namespace catena
