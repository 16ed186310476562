// pad: a constant around the elements, or elements taken again along each axis.
#include "catena/functions/array/pad.h"

#include "catena/array/creation.h"
#include "catena/functions/array/take.h"
#include "functions/common/parts.h"

namespace catena::functions {
namespace {

// The gradient is a view of the inner part.
class PadNode final : public FunctionNode {
 public:
  explicit PadNode(const GetItem& inside) : inside_(inside) {}
  std::string label() const override { return "Pad"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) give_linear<false>(context, 0, *inputs()[0], inside_, gy);
  }

 private:
  GetItem inside_;
};

Variable pad_constant(FunctionCall& call, const PadWidths& given, const Scalar& value) {
  const Array& x = call[0].data();
  const Array y = catena::pad(x, given, PadMode::kConstant, value);
  return call.record(y, [&] {
    PadWidths widths = given;
    if (widths.size() == 1) widths.resize(size_t(x.ndim()), widths[0]);
    std::vector<Index> inside;
    for (size_t d = 0; d < widths.size(); ++d)
      inside.emplace_back(Slice(widths[d].first, widths[d].first + x.shape()[d]));
    return make_node<PadNode>(GetItem(y.shape(), inside));
  });
}

}  // namespace

Variable pad(const VariableOperand& operand, const PadWidths& widths, PadMode mode,
             const Scalar& value) {
  FunctionCall call("Pad", Autocast::kNone, operand);
  if (mode == PadMode::kConstant) return pad_constant(call, widths, value);
  Variable y = call[0];
  CATENA_CHECK(ShapeError, widths.size() == 1 || static_cast<int>(widths.size()) == y.ndim(),
               "Pad: ", widths.size(), " pairs of widths for a variable of shape ", y.shape());
  for (int d = 0; d < y.ndim(); ++d) {
    const auto& width = widths[widths.size() == 1 ? 0 : size_t(d)];
    if (width == std::pair<int64_t, int64_t>(0, 0)) continue;
    const Array places = arange(y.shape()[size_t(d)], {Dtype::kInt64, cpu()});
    y = take(y, catena::pad(places, PadWidths{width}, mode).to(y.device()), d);
  }
  return y;
}

Variable pad(const VariableOperand& x, int64_t width, PadMode mode, const Scalar& value) {
  return pad(x, PadWidths{{width, width}}, mode, value);
}

}  // namespace catena::functions
