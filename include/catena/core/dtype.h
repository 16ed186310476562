// Element types, their promotion (NumPy 2, NEP 50) and run-time dispatch to C++ types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>

#include "catena/core/error.h"
#include "catena/core/half.h"

namespace catena {

// The type of an array's elements. The order of the values is part of the kernel tables.
enum class Dtype : uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
};
inline constexpr int kDtypeCount = 13;  // values of Dtype

// Short names for call sites: ones({2, 3}, dtype::float32).
namespace dtype {
inline constexpr Dtype bool_ = Dtype::kBool, int8 = Dtype::kInt8, int16 = Dtype::kInt16,
                       int32 = Dtype::kInt32, int64 = Dtype::kInt64, uint8 = Dtype::kUInt8,
                       uint16 = Dtype::kUInt16, uint32 = Dtype::kUInt32, uint64 = Dtype::kUInt64,
                       float16 = Dtype::kFloat16, bfloat16 = Dtype::kBFloat16,
                       float32 = Dtype::kFloat32, float64 = Dtype::kFloat64;
}

// Ordered: a scalar of a higher kind changes the result's dtype, one of the same or lower does not.
enum class DtypeKind : uint8_t { kBool, kInt, kFloat };

// Bytes of an element, and the kinds: bool is neither an integer nor a float.
constexpr size_t itemsize(Dtype d) {
  constexpr uint8_t sizes[kDtypeCount] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
  return sizes[static_cast<int>(d)];
}
constexpr bool is_float(Dtype d) { return d >= Dtype::kFloat16; }
constexpr bool is_signed_int(Dtype d) { return d >= Dtype::kInt8 && d <= Dtype::kInt64; }
constexpr bool is_unsigned_int(Dtype d) { return d >= Dtype::kUInt8 && d <= Dtype::kUInt64; }
constexpr bool is_int(Dtype d) { return d >= Dtype::kInt8 && d <= Dtype::kUInt64; }
constexpr DtypeKind kind_of(Dtype d) {
  return d == Dtype::kBool ? DtypeKind::kBool : is_int(d) ? DtypeKind::kInt : DtypeKind::kFloat;
}

// NumPy's name: "float32", "bool", ... and "bfloat16".
const char* name(Dtype d);
inline std::string to_string(Dtype d) { return name(d); }
// Prints name(d).
std::ostream& operator<<(std::ostream& os, Dtype d);
// Inverse of name(); also NumPy's one-letter codes and "f4" forms. Throws DtypeError.
Dtype parse_dtype(std::string_view text);

// The dtype of an operation on arrays of both dtypes, as in NumPy 2. bfloat16 gives
//   with integers and bool   bfloat16
//   with float16             float32
//   with float32, float64    the other dtype
Dtype promote(Dtype a, Dtype b);
// The dtype in which a float function (exp, sqrt, ...) of d computes and returns: floats
// themselves, 8-bit and bool -> float16, 16-bit -> float32, wider integers -> float64.
Dtype float_result(Dtype d);
// Whether every value of `from` has an exact image in `to` (NumPy's "safe" cast).
bool can_cast_safely(Dtype from, Dtype to);

// Whether elements may be of the C++ type T, and the dtype of such a type.
template <class T>
inline constexpr bool kIsDtypeStorage = false;
template <class T>
struct DtypeOf;
#define CATENA_MAP_DTYPE(type, value)                 \
  template <>                                         \
  inline constexpr bool kIsDtypeStorage<type> = true; \
  template <>                                         \
  struct DtypeOf<type> {                              \
    static constexpr Dtype kValue = value;            \
  };
CATENA_MAP_DTYPE(bool, Dtype::kBool)
CATENA_MAP_DTYPE(int8_t, Dtype::kInt8)
CATENA_MAP_DTYPE(int16_t, Dtype::kInt16)
CATENA_MAP_DTYPE(int32_t, Dtype::kInt32)
CATENA_MAP_DTYPE(long, Dtype::kInt64)
CATENA_MAP_DTYPE(long long, Dtype::kInt64)  // one of the two is int64_t
CATENA_MAP_DTYPE(uint8_t, Dtype::kUInt8)
CATENA_MAP_DTYPE(uint16_t, Dtype::kUInt16)
CATENA_MAP_DTYPE(uint32_t, Dtype::kUInt32)
CATENA_MAP_DTYPE(unsigned long, Dtype::kUInt64)
CATENA_MAP_DTYPE(unsigned long long, Dtype::kUInt64)
static_assert(sizeof(long) == sizeof(int64_t));
CATENA_MAP_DTYPE(float16, Dtype::kFloat16)
CATENA_MAP_DTYPE(bfloat16, Dtype::kBFloat16)
CATENA_MAP_DTYPE(float, Dtype::kFloat32)
CATENA_MAP_DTYPE(double, Dtype::kFloat64)
#undef CATENA_MAP_DTYPE

// The dtype whose elements are of the C++ type T: dtype_of<float> is float32.
template <class T>
inline constexpr Dtype dtype_of = DtypeOf<std::remove_cv_t<T>>::kValue;

// A C++ type as a value; what visit_dtype passes.
template <class T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>{}) with the C++ storage type of d.
template <class F>
decltype(auto) visit_dtype(Dtype d, F&& f) {
  switch (d) {
    case Dtype::kBool:
      return f(TypeTag<bool>{});
    case Dtype::kInt8:
      return f(TypeTag<int8_t>{});
    case Dtype::kInt16:
      return f(TypeTag<int16_t>{});
    case Dtype::kInt32:
      return f(TypeTag<int32_t>{});
    case Dtype::kInt64:
      return f(TypeTag<int64_t>{});
    case Dtype::kUInt8:
      return f(TypeTag<uint8_t>{});
    case Dtype::kUInt16:
      return f(TypeTag<uint16_t>{});
    case Dtype::kUInt32:
      return f(TypeTag<uint32_t>{});
    case Dtype::kUInt64:
      return f(TypeTag<uint64_t>{});
    case Dtype::kFloat16:
      return f(TypeTag<float16>{});
    case Dtype::kBFloat16:
      return f(TypeTag<bfloat16>{});
    case Dtype::kFloat32:
      return f(TypeTag<float>{});
    case Dtype::kFloat64:
      return f(TypeTag<double>{});
  }
  fail<DtypeError>("visit_dtype: invalid dtype value ", static_cast<int>(d));
}

// The same for the four floating types; `who` is named in the DtypeError for any other.
template <class F>
decltype(auto) visit_float(const char* who, Dtype d, F&& f) {
  switch (d) {
    case Dtype::kFloat16:
      return f(TypeTag<float16>{});
    case Dtype::kBFloat16:
      return f(TypeTag<bfloat16>{});
    case Dtype::kFloat32:
      return f(TypeTag<float>{});
    case Dtype::kFloat64:
      return f(TypeTag<double>{});
    default:
      fail<DtypeError>(who, ": expected a floating dtype, got ", d);
  }
}

// The type a kernel computes in for storage type T: float for the 16-bit floats, T itself
// otherwise.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<float16> {
  using type = float;
};
template <>
struct ComputeType<bfloat16> {
  using type = float;
};
// ComputeType<T>::type.
template <class T>
using compute_t = typename ComputeType<T>::type;

}  // namespace catena
