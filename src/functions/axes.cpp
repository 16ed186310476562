#include "functions/axes.h"

#include "functions/checks.h"

namespace catena::functions {

void check_axes(const char* label, const Array& x, const Axes& axes) {
  const Checks checks(label);
  checks.require_float(x);
  for (int64_t axis : axes) {
    if (axis >= 0)
      checks.require(shown(axis, "axis") < TypeOf(x, 0).ndim());
    else
      checks.require(shown(-axis, "-axis") <= TypeOf(x, 0).ndim());
  }
}

}  // namespace catena::functions
