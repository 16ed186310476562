// stack, hstack, vstack, dstack, column_stack and block: concat of views.
#include "catena/functions/array/stack.h"

#include <algorithm>

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

Variable one_or_joined(const Variables& parts, Axis axis) {
  return parts.size() == 1 ? parts[0] : concat(parts, axis);
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

Variable column_stack(const Variables& xs) {
  check_some("ColumnStack", xs);
  FunctionCall call("ColumnStack", Autocast::kWidest, xs);
  Variables parts;
  for (const Variable* x : call.inputs()) {
    CATENA_CHECK(ShapeError, x->ndim() == 1 || x->ndim() == 2, call.label(), ": input ",
                 parts.size(), " has shape ", x->shape(), "; expected 1 or 2 axes");
    parts.push_back(x->ndim() == 1 ? expand_dims(*x, 1) : *x);
  }
  return concat(parts, 1);
}

Variable block(const std::vector<Variables>& rows) {
  CATENA_CHECK(ValueError, !rows.empty(), "Block: expected at least one row of blocks");
  Variables blocks;
  for (const Variables& row : rows) {
    CATENA_CHECK(ValueError, !row.empty(),
                 "Block: a row has no blocks; expected at least one in each row");
    blocks.insert(blocks.end(), row.begin(), row.end());
  }
  FunctionCall call("Block", Autocast::kWidest, blocks);
  int ndim = rows.size() > 1 ? 2 : 1;
  for (const Variable* x : call.inputs()) ndim = std::max(ndim, x->ndim());
  blocks = with_axes(call, ndim);
  Variables joined;
  auto next = blocks.begin();
  for (const Variables& row : rows) {
    const auto end = next + static_cast<std::ptrdiff_t>(row.size());
    joined.push_back(one_or_joined({next, end}, -1));
    next = end;
  }
  return one_or_joined(joined, -2);
}

}  // namespace catena::functions
