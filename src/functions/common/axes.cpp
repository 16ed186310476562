#include "functions/common/axes.h"

namespace catena::functions {

namespace {

// Which axes the input has.
std::string axes_text(const NamedInput& input, int64_t axis) {
  const int n = input.array->ndim();
  const std::string given = message("; the axis given is ", axis, ".");
  if (n == 0) return message(input.text(), " is one number and has no axis", given);
  if (n == 1) return message(input.text(), " has one axis, 0 or -1", given);
  return message(input.text(), " has ", n, " axes, 0 to ", n - 1, ", or -", n,
                 " to -1 from the end", given);
}

}  // namespace

void require_axis(const FunctionCall& call, const NamedInput& input, int64_t axis,
                  const char* hint) {
  const int n = input.array->ndim();
  CATENA_CHECK(IndexError, axis >= -n && axis < n, call.label(), ": ", axes_text(input, axis),
               hint);
}

void check_axes(const FunctionCall& call, const Array& x, const Axes& axes) {
  const TypeOf in(x, "x");
  const Checks checks(call.named(), in);
  checks.require_float(in);
  for (int64_t axis : axes) require_axis(call, in, axis);
}

}  // namespace catena::functions
