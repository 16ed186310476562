// Element-wise operations and their slots: ids, their rows of the table, and calls.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catena/core/dtype.h"
#include "catena/core/scalar.h"
#include "catena/kernels/elementwise_columns.h"
#include "catena/kernels/slot.h"

namespace catena {

class Array;

// The most operands an operation may have.
inline constexpr int kMaxElementwiseInputs = 4;

// An operation: the number of its row in the table, detail/elementwise.def. Nothing here includes
// the table. Code that names operations writes ops::add (kernels/elementwise_ops.h).
enum class ElementwiseOp : uint16_t;

// One row of the table.
struct ElementwiseInfo {
  const char* name;     // "add"
  const char* functor;  // "Add", in src/device/scalar_ops.h
  const char* caption;  // in drawings of graphs and type errors: "_ + _", else as the name
  int inputs;
  OpTypes types;
  OpForm form;
  OpCost cost;
  double low, high;  // range of the samples tests draw
  bool differentiable;

  // As NumPy's ufuncs count them.
  int nin() const { return inputs; }
  int nout() const { return 1; }
  int nargs() const { return nin() + nout(); }

  // Whether the first operand is a condition, as in where().
  bool first_is_bool() const { return form == OpForm::kChoice; }
  // Whether the operation is computed in d.
  bool computes_in(Dtype d) const {
    const uint8_t kind = is_float(d) ? kFloatBit : d == Dtype::kBool ? kBoolBit : kIntBit;
    return (kOpKinds[static_cast<int>(types)] & kind) != 0;
  }
  // The dtypes of input k and of the result when the operation computes in d.
  Dtype operand_dtype(int k, Dtype d) const { return k == 0 && first_is_bool() ? Dtype::kBool : d; }
  Dtype natural_result(Dtype d) const { return form == OpForm::kTest ? Dtype::kBool : d; }
};
// The row of an operation. Valid for the whole process.
const ElementwiseInfo& info(ElementwiseOp op);
// All operations, in the order of the table.
std::span<const ElementwiseOp> elementwise_ops();
// The operation of that name ("add"); ValueError when there is none.
ElementwiseOp elementwise_op(std::string_view name);

// The dtypes it computes in and gives, in the one-letter codes of dtype_char: "ff->f", "dd->?".
std::vector<std::string> elementwise_types(ElementwiseOp op);

// The same of an operation.
inline bool computes_in(ElementwiseOp op, Dtype d) { return info(op).computes_in(d); }
inline Dtype operand_dtype(ElementwiseOp op, int k, Dtype d) {
  return info(op).operand_dtype(k, d);
}
inline Dtype natural_result(ElementwiseOp op, Dtype d) { return info(op).natural_result(d); }

// outputs[i] = op(inputs...). Input k is arrays[k], or scalars[k] when arrays[k] is null. Arrays
// have the output's shape after broadcasting (strides may be 0, any layout); every input is
// converted to operand_dtype(op, k, dtype) before the op; the result is converted to
// output->dtype() on store. The output may be exactly one of the inputs, never overlap one
// partially.
struct ElementwiseCall {
  ElementwiseOp op;
  Dtype dtype;  // in which the op computes
  int input_count;
  const Array* arrays[kMaxElementwiseInputs];
  Scalar scalars[kMaxElementwiseInputs];
  const Array* output;  // not empty (size > 0)
};

// A fused chain of operations; see src/array/fused_program.h.
struct FusedCall;

namespace kernels {

// The slots of the calls above.
extern Slot<ElementwiseCall> elementwise;
extern Slot<FusedCall> fused;

}  // namespace kernels

}  // namespace catena
