// broadcast_to and broadcast: views whose gradients are sums.
#include "catena/functions/array/broadcast.h"

#include "catena/array/reduction.h"
#include "catena/autograd/linear_map.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

struct Broadcast {
  static constexpr const char* kName = "Broadcast";
  Shape from, to;
  Array forward(const Array& x) const { return x.broadcast_to(to); }
  Array adjoint(const Array& gy) const { return catena::sum_to(gy, from); }
  void adjoint(const Array& gy, const Array& gx, bool accumulate) const {
    sum_into(gy, gx, accumulate);
  }
};

}  // namespace

Variable broadcast_to(const VariableOperand& operand, const Shape& shape) {
  const Variable& x = operand.variable(Broadcast::kName);
  if (x.shape() == shape) return x;
  FunctionCall call(Broadcast::kName, Autocast::kNone, x);
  return linear_map(call, Broadcast{x.shape(), shape});
}

Variables broadcast(const Variables& xs) {
  Shape shape;
  Arrays arrays;
  for (const Variable& x : xs)
    arrays.push_back(VariableOperand(x).variable(Broadcast::kName).data());
  try {
    CATENA_CHECK(ShapeError, !xs.empty(), "Broadcast: expected at least one input");
    for (const Array& a : arrays) shape = broadcast_shapes("Broadcast", shape, a.shape());
  } catch (const ShapeError&) {
    std::string shapes;
    for (const Array& a : arrays) shapes += (shapes.empty() ? "" : ", ") + to_string(a.shape());
    fail<InvalidType>(
        "Invalid operation is performed in: Broadcast (Forward)\n\nExpect: each dimension has the "
        "same size or is 1\nActual: shapes: ",
        shapes);
  }
  Variables results;
  for (const Variable& x : xs) results.push_back(broadcast_to(x, shape));
  return results;
}

}  // namespace catena::functions
