// Element types, their promotion (NumPy 2, NEP 50) and run-time dispatch to C++ types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "catena/core/error.h"
#include "catena/core/half.h"

namespace catena {

// The type of an array's elements. The order of the values is part of the kernel tables.
enum class Dtype : uint8_t {
#define CATENA_DTYPE(value, ...) value,
#include "catena/core/dtype_rows.def"
#undef CATENA_DTYPE
};

// Short names for call sites: ones({2, 3}, dtype::float32).
namespace dtype {
#define CATENA_DTYPE(value, name, ...) inline constexpr Dtype name = Dtype::value;
#include "catena/core/dtype_rows.def"
#undef CATENA_DTYPE
}  // namespace dtype

// Ordered: a scalar of a higher kind changes the result's dtype, one of the same or lower does not.
enum class DtypeKind : uint8_t { kBool, kInt, kFloat };

// What is known of a dtype. A text is "" where a format has no name for it.
struct DtypeRow {
  using Text = char[24];  // no pointers: plug-ins have constants of their own, never data
  uint8_t size;           // bytes of an element
  DtypeKind kind;
  bool is_signed;
  uint8_t mantissa_bits, exponent_bits;  // of a float, as in IEEE formats; else 0
  Text name;                             // NumPy's, and "bfloat16"
  char letter;                           // NumPy's one-letter code
  Text code;                             // kind and bytes: "f4"
  Text array_code;                       // of NumPy's array interface and .npy files: "<f4"
  uint8_t dlpack_code;
  Text description;  // "single precision"
  Text kernel_type;  // in the text of kernels that are compiled at run time
  Text safetensors, torch, torch_storage;
};
// The rows in the order of Dtype. Hidden: each library has its own copy.
[[gnu::visibility("hidden")]] inline constexpr DtypeRow kDtypeRows[] = {
#define CATENA_DTYPE(value, short_name, type, kind, mantissa, exponent, ...) \
  {sizeof(type), DtypeKind::kind, !std::is_unsigned_v<type>, mantissa, exponent, __VA_ARGS__},
#include "catena/core/dtype_rows.def"
#undef CATENA_DTYPE
};
inline constexpr int kDtypeCount = std::size(kDtypeRows);
// The row of a dtype.
constexpr const DtypeRow& row_of(Dtype d) { return kDtypeRows[static_cast<int>(d)]; }

// Bytes of an element, and the kinds: bool is neither an integer nor a float.
constexpr size_t itemsize(Dtype d) { return row_of(d).size; }
constexpr DtypeKind kind_of(Dtype d) { return row_of(d).kind; }
constexpr bool is_float(Dtype d) { return kind_of(d) == DtypeKind::kFloat; }
constexpr bool is_int(Dtype d) { return kind_of(d) == DtypeKind::kInt; }
constexpr bool is_signed_int(Dtype d) { return is_int(d) && row_of(d).is_signed; }
constexpr bool is_unsigned_int(Dtype d) { return is_int(d) && !row_of(d).is_signed; }
// A float of fewer bits than the float in which kernels compute it.
constexpr bool is_narrow_float(Dtype d) { return is_float(d) && itemsize(d) < sizeof(float); }

// NumPy's name: "float32", "bool", ... and "bfloat16".
constexpr const char* name(Dtype d) { return row_of(d).name; }
inline std::string to_string(Dtype d) { return name(d); }
// Prints name(d).
std::ostream& operator<<(std::ostream& os, Dtype d);
// Inverse of name(); also NumPy's one-letter codes and "f4" forms. Throws DtypeError.
Dtype parse_dtype(std::string_view text);
// The dtype whose column of its row is the text, such as &DtypeRow::safetensors; none for "".
std::optional<Dtype> find_dtype(const DtypeRow::Text DtypeRow::*column, std::string_view text);
// "float16, bfloat16, float32 or float64", for messages.
std::string float_names();

// The dtype of an operation on arrays of both dtypes, as in NumPy 2. bfloat16 gives
//   with integers and bool   bfloat16
//   with float16             float32
//   with float32, float64    the other dtype
Dtype promote(Dtype a, Dtype b);
// The dtype in which a float function (exp, sqrt, ...) of d computes and returns: floats
// themselves, 8-bit and bool -> float16, 16-bit -> float32, wider integers -> float64.
Dtype float_result(Dtype d);
// The value of a floating dtype that is nearest to a number, ties to even.
double round_to(Dtype d, double value);
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
    static constexpr Dtype kValue = Dtype::value;     \
  };
#define CATENA_DTYPE(value, name, type, ...) CATENA_MAP_DTYPE(type, value)
#include "catena/core/dtype_rows.def"
#undef CATENA_DTYPE
// Of long and long long, one is int64_t.
using OtherInt64 = std::conditional_t<std::is_same_v<int64_t, long>, long long, long>;
static_assert(sizeof(OtherInt64) == sizeof(int64_t));
CATENA_MAP_DTYPE(OtherInt64, kInt64)
CATENA_MAP_DTYPE(std::make_unsigned_t<OtherInt64>, kUInt64)
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
#define CATENA_DTYPE(value, name, type, ...) \
  case Dtype::value:                         \
    return f(TypeTag<type>{});
#include "catena/core/dtype_rows.def"
#undef CATENA_DTYPE
  }
  fail<DtypeError>("visit_dtype: invalid dtype value ", static_cast<int>(d));
}

// The same for the floating types; `who` is named in the DtypeError for any other.
template <class F>
decltype(auto) visit_float(const char* who, Dtype d, F&& f) {
  switch (d) {
#define CATENA_DTYPE(value, name, type, kind, ...)                                 \
  case Dtype::value:                                                               \
    if constexpr (DtypeKind::kind == DtypeKind::kFloat) return f(TypeTag<type>{}); \
    break;
#include "catena/core/dtype_rows.def"
#undef CATENA_DTYPE
  }
  fail<DtypeError>(who, ": expected a floating dtype, got ", d);
}

// The type a kernel computes in for storage type T: float for narrower floats, T itself otherwise.
template <class T>
struct ComputeType {
  using type = T;
};
template <class T>
requires(kIsDtypeStorage<T>&& is_narrow_float(DtypeOf<T>::kValue)) struct ComputeType<T> {
  using type = float;
};
// ComputeType<T>::type.
template <class T>
using compute_t = typename ComputeType<T>::type;

}  // namespace catena
