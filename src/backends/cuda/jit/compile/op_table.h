// The element-wise table as the kernel generator needs it. A copy of the rows' facts that does not
// need libcatena, so that the bundle tool is built and run before the library is.
#pragma once

#include <string_view>

#include "catena/array/elementwise.h"

namespace catena::jit {

struct OpRow {
  const char* name;
  const char* functor;
  int inputs;
  OpTypes types;
  OpResult result;
  bool first_is_bool;
};
const OpRow& op_row(ElementwiseOp op);

// As computes_in, operand_dtype and natural_result of the library.
bool row_computes_in(const OpRow& row, Dtype d);
inline Dtype row_operand(const OpRow& row, int k, Dtype d) {
  return k == 0 && row.first_is_bool ? Dtype::kBool : d;
}
inline Dtype row_result(const OpRow& row, Dtype d) {
  return row.result == OpResult::kBool ? Dtype::kBool : d;
}

// The C++ type of a dtype in kernel texts, and its NumPy name.
const char* type_name(Dtype d);
const char* dtype_name(Dtype d);

}  // namespace catena::jit
