// Code that all linear maps share, and the map that autocast applies.
#include "catena/autograd/linear_map.h"

#include "autograd/copied_parameter.h"

#include "catena/array/math.h"

namespace catena::detail {
namespace {

struct Cast {
  static constexpr const char* kName = "Cast";
  Dtype from, to;
  Array forward(const Array& x) const { return x.astype(to); }
  Array adjoint(const Array& gy) const { return gy.astype(from); }
};

}  // namespace

void assign_or_add(const Array& target, const Array& value, bool accumulate) {
  if (accumulate)
    add(target, value, target);
  else
    target.assign(value);
}

Array array_like(const VariableNode& vertex) {
  return Array::uninitialized(vertex.shape, vertex.dtype, vertex.device);
}

Variable cast(const Variable& x, Dtype dtype) {
  FunctionCall call(Cast::kName, Autocast::kNone, x);
  return linear_map(call, Cast{x.dtype(), dtype});
}

Variable cast(const Variable& x, Dtype dtype, const Array& values) {
  FunctionCall call(Cast::kName, Autocast::kNone, x);
  return record_linear<Cast, false>(call, Cast{x.dtype(), dtype}, values);
}

VariableNode* copied_parameter(const VariableNode& v) {
  if (!is_narrow_float(v.dtype)) return nullptr;
  const auto* cast = dynamic_cast<const LinearMapNode<Cast, false>*>(v.creator.get());
  if (cast == nullptr) return nullptr;
  VariableNode* source = cast->inputs()[0].get();
  return source->parameter && source->dtype == Dtype::kFloat32 ? source : nullptr;
}

}  // namespace catena::detail
