// Bringing a result that was computed on its own into the array that a caller named.
#pragma once

#include "catena/array/array.h"

namespace catena {

// `result`, or `out` holding it if it is defined. Throws ShapeError, DeviceError and ValueError
// (read-only); the elements are cast.
inline Array result_into(const Array& result, const Array& out) {
  if (!out.defined()) return result;
  CATENA_CHECK(ShapeError, out.shape() == result.shape(), "the output has shape ", out.shape(),
               ", the result has ", result.shape());
  check_same_device(result, out);
  check_writable(out);
  out.assign(result);
  return out;
}
// The same with an array that may be null.
inline Array result_into(const Array& result, const Array* out) {
  return out == nullptr ? result : result_into(result, *out);
}

// Throws ValueError for arguments of reductions that a function does not take.
inline void refuse_initial(const ReduceOptions& options) {
  CATENA_CHECK(ValueError, !options.initial, "takes no `initial`");
}
inline void refuse_mask(const ReduceOptions& options) {
  CATENA_CHECK(ValueError, !options.where.defined(),
               "takes no `where`; select the elements with a(mask) or where() first");
  refuse_initial(options);
}
// The same for functions that are not element-wise.
inline void refuse_mask(const Out& out) {
  CATENA_CHECK(ValueError, out.where == nullptr,
               "takes no `where`; store the result with copyto(out, result, casting, &mask)");
}
// The array that `out` names, if any, for functions that take neither a mask nor a dtype there
// (ValueError).
inline const Array* destination(const Out& out) {
  refuse_mask(out);
  CATENA_CHECK(ValueError, !out.dtype,
               "takes an array as `out`, got a dtype; convert the result with astype()");
  return out.array;
}

}  // namespace catena
