#include "catena/kernels/elementwise.h"

#include "catena/core/dtype_info.h"

namespace catena {

ElementwiseOp elementwise_op(std::string_view name) {
  for (const ElementwiseOp op : elementwise_ops()) {
    if (name == info(op).name) return op;
  }
  fail<ValueError>("elementwise_op: there is no element-wise operation '", name,
                   "'; their names are those of the functions in math.h");
}

std::vector<std::string> elementwise_types(ElementwiseOp op) {
  const ElementwiseInfo& row = info(op);
  std::vector<std::string> types;
  for (int k = 0; k < kDtypeCount; ++k) {
    const auto d = static_cast<Dtype>(k);
    if (!row.computes_in(d)) continue;
    std::string text;
    for (int i = 0; i < row.inputs; ++i) text += dtype_char(row.operand_dtype(i, d));
    types.push_back(text + "->" + dtype_char(row.natural_result(d)));
  }
  return types;
}

}  // namespace catena
