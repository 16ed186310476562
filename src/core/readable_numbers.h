// Numbers as people read them, whatever the locale.
#pragma once

#include <cstdint>
#include <string>

namespace catena {

// "1,234,567".
std::string grouped(int64_t n);
// With so many digits behind the point: "0.50".
std::string fixed_digits(double value, int digits);
// A unit of bytes.
struct ByteUnit {
  const char* name;
  double bytes;
};
// The largest unit of which so many bytes are less than `next`.
ByteUnit byte_unit(double bytes, double next = 1024);
// "12.5 KiB"; "612 B" below one KiB.
std::string bytes_text(int64_t bytes);

}  // namespace catena
