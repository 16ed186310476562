// get_item: a view; its gradient puts values into zeros.
#include "catena/functions/array/get_item.h"

#include "catena/array/creation.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// Zeros of a shape with gy at the indexed place.
Variable put_item(const Variable& gy, const std::vector<Index>& indices, const Shape& shape);

class PutItemNode final : public FunctionNode {
 public:
  explicit PutItemNode(const std::vector<Index>& indices) : indices_(indices) {}
  std::string label() const override { return "PutItem"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, get_item(gy, indices_));
  }

 private:
  std::vector<Index> indices_;
};

class GetItemNode final : public FunctionNode {
 public:
  explicit GetItemNode(const std::vector<Index>& indices) : indices_(indices) {}
  std::string label() const override { return "GetItem"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, put_item(gy, indices_, inputs()[0]->shape));
  }

 private:
  std::vector<Index> indices_;
};

Variable put_item(const Variable& gy, const std::vector<Index>& indices, const Shape& shape) {
  const Array y = zeros(shape, {gy.dtype(), gy.device()});
  y.at(std::span<const Index>(indices)).assign(gy.data());
  return record("put_item", gy, y, [&] { return make_node<PutItemNode>(indices); });
}

}  // namespace

Variable get_item(const VariableOperand& operand, std::span<const Index> indices) {
  const Variable& x = operand.variable("get_item");
  const Array y = x.data().at(indices);
  return record("get_item", x, y, [&] {
    return make_node<GetItemNode>(std::vector<Index>(indices.begin(), indices.end()));
  });
}

}  // namespace catena::functions
