// The dtype that an element-wise operation computes in, for arrays and for values of a fused chain,
// and which dtypes its arguments and its result may be brought to.
#pragma once

#include "catena/array/elementwise.h"

namespace catena {

// The dtype the operation computes in for inputs promoted to d. Throws DtypeError naming it.
Dtype dtype_in_class(const ElementwiseInfo& op, Dtype d);

// NumPy's same_kind rule, as DtypeErrors: for storing a result of dtype `from` into
// an array of dtype `to`, and for computing with an input of dtype `from` in dtype `to`.
void check_storable(Dtype from, Dtype to);
void check_computable(Dtype from, Dtype to);

// What a comparison of elements of dtype d with an integer that d does not hold says of every
// element; nothing for other operations and numbers. The number is operand `place`, 0 or 1.
std::optional<bool> comparison_out_of_range(ElementwiseOp op, int place, Dtype d,
                                            const Scalar& number);

// The dtype of a float operation on integers: that of the narrowest loop which every operand fits,
// as in NumPy, and not the one of their common integer type.
template <class List>
Dtype float_of_integers(const ElementwiseInfo& op, const List& list) {
  Dtype d = Dtype::kFloat16;
  for (int k = 0; k < op.inputs; ++k) d = promote(d, float_result(list[k].array()->dtype()));
  return d;
}

// The common dtype of the operands: list[k].array() points to something with a dtype(), or is null
// and list[k].scalar() is a weak number.
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
