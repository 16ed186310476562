// Text of arrays as NumPy prints them, and what may be chosen about it.
#pragma once

#include <string>

#include "catena/array/array.h"

namespace catena {

// NumPy's print options of the same names.
enum class FloatMode { kFixed, kUnique, kMaxprec, kMaxprecEqual };
struct PrintOptions {
  int precision = 8;         // digits behind the point at most (kFixed: exactly; kUnique: unused)
  int64_t threshold = 1000;  // arrays of more elements are shown by their edges
  int edgeitems = 3;         // what is shown of an axis then, at each end
  int linewidth = 75;        // characters of a line at most, where the elements allow it
  bool suppress = false;     // no exponents for numbers that are merely small
  // How not-a-number and infinity are printed.
  std::string nanstr = "nan", infstr = "inf";
  char sign = '-';  // '-': of negative numbers only; '+': always; ' ': a blank for the others
  FloatMode floatmode = FloatMode::kMaxprec;  // how many digits are printed
};

// What printing uses by default: the options of the calling thread's innermost PrintOptionsScope,
// else those of the process.
PrintOptions get_printoptions();
// Changes them; inside a scope those of the scope, which go with it. ValueError for negative
// numbers and unknown signs.
void set_printoptions(const PrintOptions& options);
// For a scope of one thread; others print as before.
class PrintOptionsScope {
 public:
  explicit PrintOptionsScope(const PrintOptions& options);
  ~PrintOptionsScope();
  PrintOptionsScope(const PrintOptionsScope&) = delete;
  PrintOptionsScope& operator=(const PrintOptionsScope&) = delete;

 private:
  friend PrintOptions get_printoptions();
  friend void set_printoptions(const PrintOptions& options);

  PrintOptions options_;
  PrintOptionsScope* outer_;
};

// NumPy's repr() and str() of an array; wait for the device. The text of a 0-d array in array_str
// is that of the number: the shortest that reads back.
std::string array_repr(const Array& a, const PrintOptions& options = get_printoptions());
std::string array_str(const Array& a, const PrintOptions& options = get_printoptions());

}  // namespace catena
