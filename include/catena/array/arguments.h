// Arguments of functions on arrays other than arrays: operands, options of reductions and copies.
#pragma once

#include <optional>
#include <type_traits>

#include "catena/array/array_class.h"
#include "catena/array/checks.h"

namespace catena {

// An argument of an element-wise operation: an array, or a host number (weak in promotion).
// Refers to the array, so it is valid only for the duration of a call.
class Operand {
 public:
  Operand(const Array& array) : array_(&array) {}
  Operand(const Scalar& scalar) : scalar_(scalar) {}
  template <class T>
  requires std::is_arithmetic_v<T> Operand(T value) : scalar_(value) {}

  // The array, null for a number, and the number.
  const Array* array() const { return array_; }
  const Scalar& scalar() const { return scalar_; }

 private:
  const Array* array_ = nullptr;
  Scalar scalar_;
};

// An array that may be left out. To give one without a value is a mistake, not a way to leave it
// out.
class OptionalArray : public Array {
 public:
  OptionalArray() = default;
  OptionalArray(const Array& array) : Array(array), given_(true) {}

  // Whether there is one. ValueError, which names the running call or `who`, if it has no value.
  bool given(const char* who = nullptr) const {
    if (given_) check_defined(who, *this);
    return given_;
  }

 private:
  bool given_ = false;
};

namespace detail {
// The first member of options that must be given by name: no value converts to it.
struct ByName {
  constexpr ByName() {}
};
}  // namespace detail

// All options of a reduction, by name: sum(a, {.axes = {0, 1}, .keepdims = true, .out = c}). A call
// with only axes and keepdims can give them directly, see ReduceAxes: sum(a, {0, 1}, true).
// Reductions that do not take `where` or `initial` throw ValueError when they are given.
struct ReduceOptions {
  [[no_unique_address]] detail::ByName by_name = {};
  AxisList axes = {};      // empty: all
  YesNo keepdims = false;  // whether the axes stay, with extent 1
  // Of the accumulation and the result. Without it the dtype that the function names, or that of
  // `out` if it is wider.
  std::optional<Dtype> dtype = {};
  OptionalArray out = {};    // receives the result, which is cast; else a new array
  OptionalArray where = {};  // mask that broadcasts to the input: only these elements count
  std::optional<Scalar> initial = {};  // one more element of every slice

  // The options of a call with only axes and keepdims; either argument can request keepdims.
  static ReduceOptions over(const ReduceAxes& axes, bool keepdims = false) {
    return {.axes = axes.axes, .keepdims = keepdims || axes.keepdims};
  }
};

// How Array::get() copies to the host; every member may be left out: a.get({.order = 'F'}).
struct GetOptions {
  // The layout of the copy: 'C', 'F', or 'A' ('F' if the array is Fortran- but not C-contiguous,
  // else 'C'). Anything else is a ValueError.
  char order = 'C';
  // Receives the elements: a host array of the same dtype (DtypeError) and shape (ShapeError),
  // contiguous in C or Fortran order (ValueError). Its layout then overrides `order`.
  OptionalArray out = {};
  // A stream of the array's device (DeviceError); by default the current one.
  std::optional<Stream> stream = {};
  // Whether to wait for the copy. If false, read it when the stream has done the copy.
  bool blocking = true;
};

}  // namespace catena
