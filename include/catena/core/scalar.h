// A host number that is "weak" in dtype promotion: x * 2 keeps x's dtype.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>

#include "catena/core/dtype.h"

namespace catena {

// A bool, an integer of 64 bits or a double. Converts from every arithmetic type and from the
// 16-bit floats.
class Scalar {
 public:
  Scalar() = default;
  // bool alone: pointers and texts are not numbers.
  template <std::same_as<bool> T>
  Scalar(T value) : kind_(Kind::kBool) {
    bits_.i = value;
  }
  template <std::signed_integral T>
  Scalar(T value) : kind_(Kind::kInt) {
    bits_.i = value;
  }
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Scalar(T value) : kind_(Kind::kUInt) { bits_.u = value; }
  template <std::floating_point T>
  Scalar(T value) : kind_(Kind::kFloat) {
    bits_.d = double(value);
  }
  template <class T>
  requires(kIsDtypeStorage<T>&& std::is_class_v<T>) Scalar(T value)
      : Scalar(double(float(value))) {}

  // Whether it is a bool, an integer or a float.
  DtypeKind kind() const {
    return kind_ == Kind::kBool    ? DtypeKind::kBool
           : kind_ == Kind::kFloat ? DtypeKind::kFloat
                                   : DtypeKind::kInt;
  }
  // The dtype NumPy gives a Python number on its own: bool, int64 (uint64 when too large), float64.
  Dtype default_dtype() const;
  double to_double() const;
  int64_t to_int64() const;  // floats truncate; out of range is a ValueError
  bool to_bool() const;
  // The number as storage type T, as a C++ cast that never has undefined behaviour.
  template <class T>
  T to() const;
  // Whether the value is representable in d (integers: in range; floats always).
  bool fits(Dtype d) const;
  // Prints to_string(value).
  friend std::ostream& operator<<(std::ostream& os, const Scalar& value);

 private:
  enum class Kind : uint8_t { kBool, kInt, kUInt, kFloat };
  union {
    int64_t i;   // of a bool and a signed integer
    uint64_t u;  // of an unsigned integer
    double d;    // of a float
  } bits_{};
  Kind kind_ = Kind::kInt;
};

// As Python prints the number: "True", "3", "0.5".
std::string to_string(const Scalar& value);

// The dtype of an operation between an array of dtype d and a weak host scalar.
// Throws ValueError when an integer does not fit d (NEP 50).
Dtype promote(Dtype d, const Scalar& value);
// Refuses to store a number into elements of dtype d that do not hold it: ValueError with
// the number and the range of d. Floats lose their fraction in integers; bool takes every number.
void check_fits(const Scalar& value, Dtype d);
void check_fits(const char* who, const Scalar& value, Dtype d);  // without an EntryScope

template <class T>
T Scalar::to() const {
  using C = compute_t<T>;
  if constexpr (std::same_as<T, bool>) {
    return to_bool();
  } else if constexpr (std::integral<T>) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(uint64_t)) {
      if (kind_ == Kind::kFloat && bits_.d >= 0x1p63 && bits_.d < 0x1p64) return T(bits_.d);
    }
    if (kind_ == Kind::kFloat) return static_cast<T>(to_int64());
    return kind_ == Kind::kUInt ? static_cast<T>(bits_.u) : static_cast<T>(bits_.i);
  } else if constexpr (std::same_as<T, C>) {
    return static_cast<T>(to_double());
  } else {
    return T(to_double());
  }
}

}  // namespace catena
