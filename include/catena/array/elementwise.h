// The table of element-wise operations: ids, dtype rules and the generic entry that every named
// function (add, exp, ...) and every gradient goes through.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catena/array/array.h"

namespace catena {

inline constexpr int kMaxElementwiseInputs = 4;

// One enumerator a row of detail/elementwise.def, in its order: ElementwiseOp::kadd, ...
enum class ElementwiseOp : uint16_t {
#define CATENA_EW(functor, name, ...) k##name,
#define CATENA_EW1 CATENA_EW
#define CATENA_EW2 CATENA_EW
#define CATENA_EW3 CATENA_EW
#include "catena/array/detail/elementwise.def"
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
  const char* functor;  // "Add", in src/kernels/scalar_ops.h
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

// Promotes, broadcasts, allocates (unless out names an array) and runs the operation.
// At least one operand must be an array, or the result is a 0-d array on current_device().
// Errors: ShapeError, DtypeError, DeviceError, all naming the operation.
Array elementwise(ElementwiseOp op, std::initializer_list<Operand> operands, const Out& out = {});

}  // namespace catena
