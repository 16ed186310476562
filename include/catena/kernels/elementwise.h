// The table of element-wise operations and their slots: ids, dtype rules and calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "catena/core/dtype.h"
#include "catena/core/scalar.h"
#include "catena/kernels/slot.h"

namespace catena {

class Array;

inline constexpr int kMaxElementwiseInputs = 4;

// One enumerator a row of detail/elementwise.def, in its order: ElementwiseOp::kadd, ...
enum class ElementwiseOp : uint16_t {
#define CATENA_EW(functor, name, ...) k##name,
#define CATENA_EW1 CATENA_EW
#define CATENA_EW2 CATENA_EW
#define CATENA_EW3 CATENA_EW
#include "catena/kernels/detail/elementwise.def"
#undef CATENA_EW
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
  kCount
};
inline constexpr int kElementwiseOpCount = static_cast<int>(ElementwiseOp::kCount);

// Dtypes an operation computes in. Inputs of another dtype are promoted into the class: integers of
// a float operation as float_result() of each says (uint8 with int8: float16), bool of an
// arithmetic one to int8.
enum class OpTypes : uint8_t {
  kAll,         // bool, integers, floats
  kNumeric,     // integers, floats; bool is a DtypeError
  kArithmetic,  // integers, floats; bool becomes int8
  kIntBool,     // bool, integers; floats are a DtypeError
  kInt,         // integers; bool becomes int8, floats are a DtypeError
  kFloat,       // floats
  kTrueDivide,  // floats; every integer becomes float64, as NumPy's division
};
enum class OpResult : uint8_t { kSame, kBool };

// One row of the table.
struct ElementwiseInfo {
  const char* name;     // "add"
  const char* functor;  // "Add", in src/device/scalar_ops.h
  int inputs;
  OpTypes types;
  OpResult result;
  bool first_is_bool;  // operand 0 is a condition: bool whatever the dtype (where)
  double low, high;    // range of the samples tests draw
  bool differentiable;

  // As NumPy's ufuncs count them.
  int nin() const { return inputs; }
  int nout() const { return 1; }
  int nargs() const { return nin() + nout(); }
};
const ElementwiseInfo& info(ElementwiseOp op);
// The operation of that name ("add"); ValueError when there is none.
ElementwiseOp elementwise_op(std::string_view name);

// The dtypes it computes in and gives, in the one-letter codes of dtype_char: "ff->f", "dd->?".
std::vector<std::string> elementwise_types(ElementwiseOp op);

// Whether the operation is computed in d.
bool computes_in(ElementwiseOp op, Dtype d);
// The dtype input k has when the operation computes in d.
inline Dtype operand_dtype(ElementwiseOp op, int k, Dtype d) {
  return k == 0 && info(op).first_is_bool ? Dtype::kBool : d;
}
inline Dtype natural_result(ElementwiseOp op, Dtype d) {
  return info(op).result == OpResult::kBool ? Dtype::kBool : d;
}

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

extern Slot<ElementwiseCall> elementwise;
extern Slot<FusedCall> fused;

}  // namespace kernels

}  // namespace catena
