// pad: a constant around the elements, or elements taken again along each axis.
#include "catena/functions/array/pad.h"

#include "array/padding.h"
#include "catena/core/entry_scope.h"
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

Variable pad_constant(FunctionCall& call, const PadWidths& widths, const Scalar& value) {
  const Array& x = call[0].data();
  const Array y = catena::pad(x, widths, PadMode::kConstant, value);
  return call.record(y, [&] {
    std::vector<Index> inside;
    for (size_t d = 0; d < widths.size(); ++d)
      inside.emplace_back(Slice(widths[d].first, widths[d].first + x.shape()[d]));
    return make_node<PadNode>(GetItem(y.shape(), inside));
  });
}

}  // namespace

Variable pad(const VariableOperand& operand, const PadWidths& given, PadMode mode,
             const Scalar& value) {
  const EntryScope entry("Pad");
  FunctionCall call("Pad", Autocast::kNone, operand);
  const PadWidths widths = checked_widths(call[0].shape(), given, mode);
  if (mode == PadMode::kConstant) return pad_constant(call, widths, value);
  Variable y = call[0];
  for (int d = 0; d < y.ndim(); ++d) {
    const auto [before, after] = widths[size_t(d)];
    if (before == 0 && after == 0) continue;
    y = take(y, padded_positions(y.shape()[size_t(d)], before, after, mode, y.device()), d);
  }
  return y;
}

Variable pad(const VariableOperand& x, int64_t width, PadMode mode, const Scalar& value) {
  return pad(x, PadWidths{{width, width}}, mode, value);
}

}  // namespace catena::functions
