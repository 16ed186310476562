#include "catena/array/elementwise.h"

#include "array/memory_order.h"
#include "array/overlap.h"
#include "array/promotion.h"
#include "catena/array/casting.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/elementwise_ops.h"

namespace catena {
namespace {

// The operands of a call whose compute dtype the caller has chosen. As in NumPy, an operand of a
// kind that cannot be cast is the first error, whatever value another one has.
void check_operands_in(const ElementwiseInfo& op, const ElementwiseCall& call, Dtype dtype) {
  const int first = op.first_is_bool() ? 1 : 0;
  for (int k = first; k < op.inputs; ++k) {
    if (call.arrays[k]) {
      check_computable(call.arrays[k]->dtype(), dtype);
    } else {
      const Scalar& number = call.scalars[k];
      CATENA_CHECK(DtypeError, number.kind() <= kind_of(dtype), "the number ", number,
                   " cannot be cast to ", dtype, ", the dtype to compute in");
    }
  }
  for (int k = first; k < op.inputs; ++k)
    if (!call.arrays[k]) promote(dtype, call.scalars[k]);  // throws if the number does not fit
}

// Whether the call compares an array with an integer that its dtype cannot hold. The answer is the
// same for all elements. So is that of the replacement, a comparison of the array with itself.
bool compares_out_of_range(ElementwiseCall& call) {
  const int at = call.arrays[0] ? 1 : 0;  // the number's operand
  const Array* a = call.arrays[1 - at];
  if (call.input_count != 2 || call.arrays[at] || a == nullptr) return false;
  const auto truth = comparison_out_of_range(call.op, at, a->dtype(), call.scalars[at]);
  if (!truth) return false;
  call.op = *truth ? ops::equal : ops::not_equal;
  call.arrays[0] = call.arrays[1] = a;
  return true;
}

// The position of the int64 array that the call compares with a uint64 array, else nothing.
std::optional<int> signed_beside_unsigned(const ElementwiseCall& call) {
  if (call.input_count != 2 || !call.arrays[0] || !call.arrays[1]) return {};
  return catena::signed_beside_unsigned(call.op, call.arrays[0]->dtype(), call.arrays[1]->dtype());
}

// Compares an int64 array, operand `place`, with a uint64 array exactly.
Array compare_with_unsigned(const ElementwiseCall& call, int place, const Out& out) {
  const Array& numbers = *call.arrays[place];
  const Array bits = numbers.view(Dtype::kUInt64);  // the number itself unless it is negative
  const Array compared = place == 0 ? elementwise(call.op, {bits, *call.arrays[1]})
                                    : elementwise(call.op, {*call.arrays[0], bits});
  const bool if_negative = *comparison_if_less(call.op, place);
  const Array sign = elementwise(if_negative ? ops::less : ops::greater_equal, {numbers, 0});
  return elementwise(if_negative ? ops::logical_or : ops::logical_and, {sign, compared}, out);
}

// Inputs broadcast to the common shape, kept alive during the call.
struct Prepared {
  Array views[kMaxElementwiseInputs];
};

void broadcast_inputs(ElementwiseCall& call, const Shape& shape, Prepared& prepared) {
  for (int k = 0; k < call.input_count; ++k) {
    const Array* a = call.arrays[k];
    if (a == nullptr || a->shape() == shape) continue;
    prepared.views[k] = a->broadcast_to(shape);
    call.arrays[k] = &prepared.views[k];
  }
}

// Inputs that overlap the output without being equal to it are copied first, so that the result is
// the same as if everything were read before anything is written.
void separate_overlaps(ElementwiseCall& call, Prepared& prepared) {
  const Array& out = *call.output;
  for (int k = 0; k < call.input_count; ++k) {
    const Array* a = call.arrays[k];
    if (a == nullptr) continue;
    if (!overlaps(*a, out)) continue;
    prepared.views[k] = a->copy('K');
    call.arrays[k] = &prepared.views[k];
  }
}

// The memory order of a new result.
MemoryOrder result_order(const ElementwiseCall& call, int ndim) {
  return common_order({call.arrays, size_t(call.input_count)}, ndim);
}

// Kernels are fastest where the output is in C order. All operands have its shape, so that the axes
// can be visited in the order of its memory.
void run_in_memory_order(ElementwiseCall& call, Prepared& prepared) {
  const MemoryOrder order = call.output->order();
  const Array output = in_order(*call.output, order);
  call.output = &output;
  for (int k = 0; k < call.input_count; ++k) {
    if (call.arrays[k] == nullptr) continue;
    prepared.views[k] = in_order(*call.arrays[k], order);
    call.arrays[k] = &prepared.views[k];
  }
  kernels::elementwise(output.device(), call);
}

// Stores the operation's result where out.where is true; elsewhere out keeps its elements.
Array masked_elementwise(ElementwiseOp op, std::initializer_list<Operand> operands,
                         const Out& out) {
  CATENA_CHECK(ValueError, out.array != nullptr,
               "`where` without an output array would leave elements undefined; give the array "
               "that keeps its elements where the mask is false, {out, mask}");
  const Array &target = *out.array, &mask = *out.where;
  CATENA_CHECK(DtypeError, mask.dtype() == Dtype::kBool, "expected a bool array as `where`, got ",
               mask.dtype());
  Out plain;
  plain.dtype = out.dtype;
  const Array result = elementwise(op, operands, plain);
  check_same_device(result, target);
  check_same_device(mask, target);
  check_writable(target);
  check_storable(result.dtype(), target.dtype());
  const Shape shape = broadcast_shapes(result.shape(), mask.shape());
  CATENA_CHECK(ShapeError, target.shape() == shape, "the output has shape ", target.shape(),
               ", expected ", shape);
  copyto(target, result, Casting::kSameKind, mask);
  return target;
}

}  // namespace

void check_storable(Dtype from, Dtype to) {
  CATENA_CHECK(DtypeError, can_cast(from, to, Casting::kSameKind), "a result of dtype ", from,
               " cannot be stored into an array of dtype ", to, "; convert it with astype");
}

void check_computable(Dtype from, Dtype to) {
  CATENA_CHECK(DtypeError, can_cast(from, to, Casting::kSameKind), "an input of dtype ", from,
               " cannot be cast to ", to, ", the dtype to compute in; convert it with astype");
}

std::optional<bool> comparison_if_less(ElementwiseOp op, int place) {
  if (op == ops::equal) return false;
  if (op == ops::not_equal) return true;
  if (op == ops::less || op == ops::less_equal) return place == 0;
  if (op == ops::greater || op == ops::greater_equal) return place == 1;
  return {};
}

std::optional<int> signed_beside_unsigned(ElementwiseOp op, Dtype first, Dtype second) {
  const bool left = first == Dtype::kInt64 && second == Dtype::kUInt64;
  const bool right = first == Dtype::kUInt64 && second == Dtype::kInt64;
  if (!(left || right) || !comparison_if_less(op, 0)) return {};
  return left ? 0 : 1;
}

std::optional<bool> comparison_out_of_range(ElementwiseOp op, int place, Dtype d,
                                            const Scalar& number) {
  if (number.kind() != DtypeKind::kInt || number.fits(d == Dtype::kBool ? Dtype::kInt64 : d))
    return {};
  return comparison_if_less(op, number.to_double() > 0 ? 1 - place : place);
}

Dtype dtype_in_class(const ElementwiseInfo& op, Dtype d) {
  switch (op.types) {
    case OpTypes::kAll: return d;
    case OpTypes::kNumeric:
      CATENA_CHECK(DtypeError, d != Dtype::kBool,
                   "not defined for bool; use logical_ or bitwise_ functions");
      return d;
    case OpTypes::kArithmetic: return d == Dtype::kBool ? Dtype::kInt8 : d;
    case OpTypes::kIntBool:
      CATENA_CHECK(DtypeError, !is_float(d), "expected integers or bool, got ", d);
      return d;
    case OpTypes::kInt:
      CATENA_CHECK(DtypeError, !is_float(d), "expected integers, got ", d);
      return d == Dtype::kBool ? Dtype::kInt8 : d;
    case OpTypes::kFloat: return float_result(d);
    case OpTypes::kTrueDivide: return is_float(d) ? d : Dtype::kFloat64;
  }
  return d;
}

Array elementwise(ElementwiseOp op, std::initializer_list<Operand> operands, const Out& out) {
  const ElementwiseInfo& row = info(op);
  const EntryScope entry(row.name);
  if (out.where) [[unlikely]]
    return masked_elementwise(op, operands, out);
  ElementwiseCall call;
  call.op = op;
  call.input_count = row.inputs;
  const Array* first = nullptr;
  bool one_shape = true;
  for (int k = 0; k < row.inputs; ++k) {
    const Operand& operand = operands.begin()[k];
    call.arrays[k] = operand.array();
    call.scalars[k] = operand.scalar();
    if (const Array* a = operand.array()) {
      CATENA_CHECK(ValueError, a->defined(), "argument ", k + 1, " is an undefined array");
      if (first == nullptr) {
        first = a;
      } else {
        if (a->device() != first->device()) [[unlikely]]
          check_same_device(*first, *a);
        one_shape = one_shape && a->shape() == first->shape();
      }
    }
  }
  if (out.dtype) {
    CATENA_CHECK(DtypeError, row.computes_in(*out.dtype), "cannot compute in ", *out.dtype);
    check_operands_in(row, call, *out.dtype);
    call.dtype = *out.dtype;
  } else if (first && row.form == OpForm::kTest && compares_out_of_range(call)) {
    call.dtype = first->dtype();
  } else if (row.form == OpForm::kTest && signed_beside_unsigned(call)) [[unlikely]] {
    return compare_with_unsigned(call, *signed_beside_unsigned(call), out);
  } else {
    call.dtype = dtype_in_class(row, promoted_dtype(row, operands.begin()));
  }
  Shape shape;
  if (first) shape = first->shape();
  if (!one_shape) {
    for (int k = 0; k < row.inputs; ++k) {
      if (call.arrays[k]) shape = broadcast_shapes(shape, call.arrays[k]->shape());
    }
  }
  Array result;
  const Dtype natural = row.natural_result(call.dtype);
  if (out.array) {
    CATENA_CHECK(ValueError, out.array->defined(), "the output is an undefined array");
    result = *out.array;
    check_writable(result);
    if (first) check_same_device(*first, result);
    if (!out.dtype || natural != result.dtype()) check_storable(natural, result.dtype());
    CATENA_CHECK(ShapeError, result.shape() == shape, "the output has shape ", result.shape(),
                 ", expected ", shape);
  } else {
    result = Array::uninitialized(shape, natural, first ? first->device() : current_device(),
                                  result_order(call, shape.ndim()));
  }
  if (result.size() == 0) return result;
  Prepared prepared;
  if (!one_shape) broadcast_inputs(call, shape, prepared);
  call.output = &result;
  if (out.array) {
    separate_overlaps(call, prepared);
    result.note_write();
  }
  if (result.is_contiguous())
    kernels::elementwise(result.device(), call);
  else
    run_in_memory_order(call, prepared);
  return result;
}

}  // namespace catena
