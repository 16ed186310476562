// Properties of dtypes as in NumPy: kinds, limits, casting rules, codes and the names of C types.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "catena/core/dtype.h"
#include "catena/core/scalar.h"

namespace catena {

// NumPy's and C's other names of the dtypes.
namespace dtype {
inline constexpr Dtype byte = Dtype::kInt8, short_ = Dtype::kInt16, intc = Dtype::kInt32,
                       int_ = Dtype::kInt64, longlong = Dtype::kInt64, ubyte = Dtype::kUInt8,
                       ushort = Dtype::kUInt16, uintc = Dtype::kUInt32, uint = Dtype::kUInt64,
                       ulonglong = Dtype::kUInt64, half = Dtype::kFloat16, single = Dtype::kFloat32,
                       float_ = Dtype::kFloat64, double_ = Dtype::kFloat64;
}

// NumPy's casting rules, each allowing what those before it do.
enum class Casting : uint8_t {
  kNo,        // equal dtypes
  kEquiv,     // the same: byte orders do not differ here
  kSafe,      // every value keeps its value
  kSameKind,  // safe, or within a kind (float64 to float32), or to a later kind of b u i f
  kUnsafe,
};
const char* name(Casting casting);  // "same_kind"
// name(casting), for messages.
inline std::string to_string(Casting casting) { return name(casting); }

// Whether the rule allows a cast between the two dtypes.
bool can_cast(Dtype from, Dtype to, Casting casting = Casting::kSafe);
// A host number, which takes a dtype that holds its value: same_kind checks its kind only, and
// integers must fit.
bool can_cast(const Scalar& value, Dtype to, Casting casting = Casting::kSafe);

inline Dtype promote_types(Dtype a, Dtype b) { return promote(a, b); }  // as NumPy calls it
// The smallest dtype that holds a number: unsigned for integers of at least 0, float16 for floats
// inside (-65000, 65000), infinities and NaN.
Dtype min_scalar_type(const Scalar& value);

// NumPy's abstract types.
enum class DtypeClass : uint8_t {
  kGeneric,  // every dtype
  kBool,
  kNumber,  // every dtype but bool
  kInteger,
  kSignedInteger,
  kUnsignedInteger,
  kInexact,  // the same as floating
  kFloating,
};
// Whether the dtype belongs to the class, or is the other dtype.
bool issubdtype(Dtype d, DtypeClass kind);
inline bool issubdtype(Dtype d, Dtype other) { return d == other; }

// One-letter code ('f'; 'E' is bfloat16), kind ('b', 'i', 'u' or 'f') and array-interface code
// ("<f4", "|b1", "<V2" for bfloat16).
char dtype_char(Dtype d);
char dtype_kind(Dtype d);
std::string dtype_code(Dtype d);
// A description: "single precision", "unsigned long integer"; numpy.typename.
const char* type_description(Dtype d);

// Limits of an integer dtype; DtypeError for others.
struct IntegerInfo {
  int bits;
  int64_t min;
  uint64_t max;
};
// The limits of an integer dtype; DtypeError for others.
IntegerInfo iinfo(Dtype d);

// Limits of a floating dtype; DtypeError for others. All values are exact in double.
struct FloatInfo {
  int bits;
  int mantissa_bits, exponent_bits;
  int precision;       // decimal digits that are kept
  double eps, epsneg;  // from 1.0 to the next number above, below
  double min, max;     // lowest and largest finite number
  double tiny;         // smallest positive normal number
  double smallest_subnormal;
  double resolution;  // 10 to the -precision
};
// The limits of a floating dtype; DtypeError for others.
FloatInfo finfo(Dtype d);

// Digits of a number: binary_repr(-3, 5) is two's complement "11101", without a width "-11".
// ValueError when the width is too small. base_repr: bases 2 to 36, zeros put before.
std::string binary_repr(int64_t number, int width = 0);
std::string base_repr(int64_t number, int base = 2, int padding = 0);

}  // namespace catena
