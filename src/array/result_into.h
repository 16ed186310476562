// Stores a result that was computed separately in the output array of the caller.
#pragma once

#include "catena/array/array.h"
#include "catena/array/casting.h"

namespace catena {

// Casts `result` into `out` and returns `out`. Throws ShapeError, DeviceError and ValueError
// (read-only, without a value).
inline Array result_into(const Array& result, const Array& out) {
  check_defined(out);
  CATENA_CHECK(ShapeError, out.shape() == result.shape(), "the output has shape ", out.shape(),
               ", the result has ", result.shape());
  check_same_device(result, out);
  check_writable(out);
  out.assign(result);
  return out;
}
// The same for an `out` that may be left out; returns `result` then.
inline Array result_into(const Array& result, const OptionalArray& out) {
  return out.given() ? result_into(result, static_cast<const Array&>(out)) : result;
}
inline Array result_into(const Array& result, const Array* out) {
  return out == nullptr ? result : result_into(result, *out);
}

// The dtype in which to accumulate a result that goes into `out` (which may be null): out's dtype
// if it holds every number of `natural`, as in NumPy, so that nothing is lost before it is stored.
inline Dtype widened_by(Dtype natural, const Array* out) {
  if (out == nullptr || !out->defined()) return natural;
  return promote(natural, out->dtype()) == out->dtype() ? out->dtype() : natural;
}

// Throw ValueError for arguments of reductions that a function does not take.
inline void refuse_initial(const ReduceOptions& options) {
  CATENA_CHECK(ValueError, !options.initial, "takes no `initial`");
}
inline void refuse_mask(const ReduceOptions& options) {
  CATENA_CHECK(ValueError, !options.where.given(),
               "takes no `where`; select the elements with a(mask) or where() first");
  refuse_initial(options);
}
// The same for functions that are not element-wise.
inline void refuse_mask(const Out& out) {
  CATENA_CHECK(ValueError, out.where == nullptr,
               "takes no `where`; store the result with copyto(out, result, casting, mask)");
}
// The array of `out`, or null, for functions whose `out` takes neither a mask nor a dtype
// (ValueError).
inline const Array* destination(const Out& out) {
  refuse_mask(out);
  CATENA_CHECK(ValueError, !out.dtype,
               "takes an array as `out`, got a dtype; convert the result with astype()");
  return out.array;
}

}  // namespace catena
