// The dtype in which an element-wise operation computes, for arrays and for values of a fused
// chain, and the dtypes to which its arguments and its result may be cast.
#pragma once

#include "catena/array/elementwise.h"

namespace catena {

// The dtype in which the operation computes for inputs promoted to d. Throws DtypeError naming it.
Dtype dtype_in_class(const ElementwiseInfo& op, Dtype d);

// NumPy's same_kind rule, as DtypeErrors: for storing a result of dtype `from` in an array of dtype
// `to`, and for computing with an input of dtype `from` in dtype `to`.
void check_storable(Dtype from, Dtype to);
void check_computable(Dtype from, Dtype to);

// The result of a comparison whose operand `place`, 0 or 1, is less than the other one. Nothing for
// other operations.
std::optional<bool> comparison_if_less(ElementwiseOp op, int place);

// Which of two compared operands is int64 if the other one is uint64, else nothing. Promotion to
// float64 would round them, so they are compared as uint64, and the sign of the int64 decides where
// it is negative.
std::optional<int> signed_beside_unsigned(ElementwiseOp op, Dtype first, Dtype second);

// The result, for every element, of comparing elements of dtype d with an integer that d cannot
// hold. Nothing for other operations and numbers. The number is operand `place`, 0 or 1.
std::optional<bool> comparison_out_of_range(ElementwiseOp op, int place, Dtype d,
                                            const Scalar& number);

// The dtype of a float operation on integers: as in NumPy the dtype of the narrowest loop that
// every operand fits, not the floating dtype of their common integer type.
template <class List>
Dtype float_of_integers(const ElementwiseInfo& op, const List& list) {
  Dtype d = Dtype::kFloat16;
  for (int k = 0; k < op.inputs; ++k) d = promote(d, float_result(list[k].array()->dtype()));
  return d;
}

// The common dtype of the operands. list[k].array() points to an object with a dtype(), or is null,
// and then list[k].scalar() is a weak number. Floats from numbers alone are default_float().
template <class List>
Dtype promoted_dtype(const ElementwiseInfo& op, const List& list) {
  bool any = false, all = true;
  Dtype d = Dtype::kBool;
  const int first = op.first_is_bool() ? 1 : 0;
  for (int k = first; k < op.inputs; ++k) {
    if (const auto* a = list[k].array()) {
      d = any ? promote(d, a->dtype()) : a->dtype();
      any = true;
    }
  }
  if (!any) {
    for (int k = first; k < op.inputs; ++k)
      if (list[k].scalar().kind() == DtypeKind::kFloat) return default_float();
  }
  for (int k = first; k < op.inputs; ++k) {
    if (list[k].array()) continue;
    all = false;
    d = any          ? promote(d, list[k].scalar())
        : k == first ? list[k].scalar().default_dtype()
                     : promote(d, list[k].scalar().default_dtype());
  }
  return op.types == OpTypes::kFloat && all && !is_float(d) ? float_of_integers(op, list) : d;
}

}  // namespace catena
