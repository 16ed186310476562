// get_item: a view; its gradient is put where the view is.
#include "catena/functions/array/get_item.h"

#include "functions/common/parts.h"

namespace catena::functions {

Variable get_item(const VariableOperand& x, std::span<const Index> indices) {
  FunctionCall call(GetItem::kName, Autocast::kNone, x);
  return linear_map(call, GetItem(call[0].shape(), indices));
}

}  // namespace catena::functions
