// tril and triu: projections, which are their own adjoints.
#include "catena/functions/array/triangle.h"

#include "catena/array/creation.h"
#include "catena/autograd/linear_map.h"
#include "catena/functions/array/broadcast.h"

namespace catena::functions {
namespace {

struct Tril {
  static constexpr const char* kName = "Tril";
  int64_t k;
  Array forward(const Array& x) const { return catena::tril(x, k); }
  Array adjoint(const Array& gy) const { return catena::tril(gy, k); }
};

struct Triu {
  static constexpr const char* kName = "Triu";
  int64_t k;
  Array forward(const Array& x) const { return catena::triu(x, k); }
  Array adjoint(const Array& gy) const { return catena::triu(gy, k); }
};

template <class Map>
Variable triangle(const VariableOperand& operand, int64_t k) {
  FunctionCall call(Map::kName, Autocast::kNone, operand);
  const Variable& x = call[0];
  CATENA_CHECK(ShapeError, x.ndim() > 0, call.label(), ": expected at least 1 axis, got a 0-d x");
  if (x.ndim() > 1) return linear_map(call, Map{k});
  return triangle<Map>(broadcast_to(x, {x.size(), x.size()}), k);
}

}  // namespace

Variable tril(const VariableOperand& x, int64_t k) { return triangle<Tril>(x, k); }
Variable triu(const VariableOperand& x, int64_t k) { return triangle<Triu>(x, k); }

}  // namespace catena::functions
