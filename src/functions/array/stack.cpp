// stack, hstack, vstack and dstack: concat of views.
#include "catena/functions/array/stack.h"

#include "catena/functions/array/concat.h"
#include "catena/functions/array/reshape.h"
#include "functions/common/advice.h"
#include "functions/common/axes.h"

namespace catena::functions {
namespace {

void check_some(const char* who, const Variables& xs) {
  CATENA_CHECK(ValueError, !xs.empty(), who, ": expected at least one input");
}

void check_alike(const FunctionCall& call) {
  const TypeOf first(call[0].data(), "xs", 0);
  for (size_t i = 1; i < call.size(); ++i) {
    const TypeOf other(call[i].data(), "xs", static_cast<int>(i));
    const auto checks = Checks(call.named(), first, other).advised([&] {
      if (first.array->dtype() != other.array->dtype())
        return dtype_advice(*first.array, *other.array);
      return std::string("Inputs of stack have one shape; concat joins along an axis they have.");
    });
    checks.require(other.dtype() == first.dtype(), other.ndim() == first.ndim());
    for (int d = 0; d < first.array->ndim(); ++d) checks.require(other.shape(d) == first.shape(d));
  }
}

// With at least this many axes: a number is one element, a vector of two axes a row.
Variables with_axes(const FunctionCall& call, int least) {
  Variables result;
  for (const Variable* x : call.inputs()) {
    Variable v = *x;
    while (v.ndim() < least) v = expand_dims(v, 0);
    result.push_back(v);
  }
  return result;
}

}  // namespace

Variable stack(const Variables& xs, Axis axis) {
  check_some("Stack", xs);
  FunctionCall call("Stack", Autocast::kWidest, xs);
  check_alike(call);
  const int a = normalize_axis(call.name(), axis, call[0].ndim() + 1);
  Variables parts;
  for (const Variable* x : call.inputs()) parts.push_back(expand_dims(*x, a));
  return concat(parts, a);
}

Variable hstack(const Variables& xs) {
  check_some("Hstack", xs);
  FunctionCall call("Hstack", Autocast::kWidest, xs);
  const Variables parts = with_axes(call, 1);
  return concat(parts, parts[0].ndim() == 1 ? 0 : 1);
}

Variable vstack(const Variables& xs) {
  check_some("Vstack", xs);
  FunctionCall call("Vstack", Autocast::kWidest, xs);
  return concat(with_axes(call, 2), 0);
}

Variable dstack(const Variables& xs) {
  check_some("Dstack", xs);
  FunctionCall call("Dstack", Autocast::kWidest, xs);
  Variables parts;
  for (const Variable& x : with_axes(call, 2))
    parts.push_back(x.ndim() == 2 ? expand_dims(x, 2) : x);
  return concat(parts, 2);
}

}  // namespace catena::functions
