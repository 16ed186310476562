// Out: where a function on arrays stores its result.
#pragma once

#include <optional>

#include "catena/core/dtype.h"

namespace catena {

class Array;

// The destination of a result. The default, out = {}, makes a new array. Refers to the arrays, so
// it is valid only for the duration of a call.
struct Out {
  const Array* array = nullptr;  // must have the shape of the result, which is cast on store
  std::optional<Dtype> dtype;    // computes in (and returns) this dtype
  // Element-wise functions: a mask that broadcasts with the operands; where it is false the array
  // keeps its elements. ValueError without an array, and in functions that are not element-wise.
  const Array* where = nullptr;

  Out() = default;
  Out(const Array& destination) : array(&destination) {}
  Out(const Array& destination, const Array& mask) : array(&destination), where(&mask) {}
  Out(Dtype d) : dtype(d) {}
};

}  // namespace catena
