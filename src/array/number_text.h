// Numbers as text and back: the shortest digits, printf conversions that are checked before use,
// and parsing that respects the range of a dtype. Independent of the process's locale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catena/core/dtype.h"

namespace catena::text {

// The shortest digits that read back as the same value of a floating dtype.
struct Digits {
  bool negative = false;
  std::string digits;  // without the point, no trailing zeros
  int exponent = 0;    // of the first digit
};
Digits shortest_digits(double value, Dtype d);

double read_float(const char* element, Dtype d);
// Python's str() of the element: "True", "-3", "0.1", "1e-05", "nan".
std::string shortest_text(const char* element, Dtype d);

// One printf conversion and the literal text before it.
struct Conversion {
  std::string before;
  std::string options;  // flags, width and precision
  char letter = 's';    // d, e, E, f, F, g, G or s
};
struct NumberFormat {
  std::vector<Conversion> conversions;
  std::string after;
};
// Throws ValueError naming `who` for conversions that do not apply to numbers.
NumberFormat parse_format(const char* who, const std::string& format);
// Appends the element; %s gives its shortest text. Throws ValueError naming `who` for %d of NaN or
// infinity.
void append_number(const char* who, const Conversion& conversion, const char* element, Dtype d,
                   std::string& out);

// Parses `word` into an element of dtype d. Returns nothing on success, else what is wrong ("is no
// int8", "is out of the range of int8").
std::string parse_number(std::string_view word, Dtype d, char* element);

}  // namespace catena::text
