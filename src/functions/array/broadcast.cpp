// broadcast_to and broadcast: views whose gradients are sums.
#include "catena/functions/array/broadcast.h"

#include "catena/functions/math/sum.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

class BroadcastNode final : public FunctionNode {
 public:
  std::string label() const override { return "Broadcast"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Shape& shape = inputs()[0]->shape;
    if (context.create_graph())
      context.set_grad(0, sum_to(gy, shape));
    else
      give_sum(context, 0, gy.data(), shape);
  }
};

}  // namespace

Variable broadcast_to(const VariableOperand& operand, const Shape& shape) {
  const Variable& x = operand.variable("broadcast_to");
  if (x.shape() == shape) return x;
  return record("broadcast_to", x, x.data().broadcast_to(shape),
                [] { return make_node<BroadcastNode>(); });
}

Variables broadcast(const Variables& xs) {
  Shape shape;
  Arrays arrays;
  for (const Variable& x : xs) arrays.push_back(VariableOperand(x).variable("broadcast").data());
  try {
    CATENA_CHECK(ShapeError, !xs.empty(), "broadcast: expected at least one input");
    for (const Array& a : arrays) shape = broadcast_shapes("broadcast", shape, a.shape());
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
