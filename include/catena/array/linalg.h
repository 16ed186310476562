// Products of arrays. float32 products are full float32 unless config().matmul_precision says
// otherwise; float16/bfloat16 accumulate in float32; integers and bool are exact.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string_view>

#include "catena/array/array.h"

namespace catena {

// NumPy's @: matrices, stacks of matrices (broadcast), vectors on either side. `out` names an array
// for the result or a dtype to compute in; what same_kind does not allow is a DtypeError.
Array matmul(const Array& a, const Array& b, const Out& out = {});
// NumPy's dot: for 2-d arrays matmul; otherwise the last axis of a with the second last of b; with
// a 0-d array multiply. `out` as in matmul.
Array dot(const Array& a, const Array& b, const Out& out = {});
// Flattened inner product, 0-d.
Array vdot(const Array& a, const Array& b);
Array inner(const Array& a, const Array& b);
// Flattened outer product (sizes of a and b).
Array outer(const Array& a, const Array& b, const Out& out = {});
// Contracts the last `axes` axes of a with the first of b.
Array tensordot(const Array& a, const Array& b, int64_t axes = 2);
Array tensordot(const Array& a, const Array& b, const Axes& axes_a, const Axes& axes_b);
// Kronecker product; the array with fewer axes gets ones before its own.
Array kron(const Array& a, const Array& b);
// Sum of a diagonal. An out dtype is that of the sum and the result.
Array trace(const Array& a, int64_t offset = 0, Axis axis1 = 0, Axis axis2 = 1,
            const Out& out = {});

// Einstein's summation, "ij,jk->ik": letters name axes, axes of one name have one extent (or 1,
// which broadcasts), names missing after the arrow are summed over; "..." stands for the other
// axes. Without an arrow: the "..." axes, then the names that occur once, in alphabetical order.
// Operands are contracted from left to right by (batched) matmul, so the order given is the order
// of work. A single operand from which nothing is summed gives a view. Throws ValueError that shows
// the subscripts, ShapeError, DeviceError.
Array einsum(std::string_view subscripts, std::span<const Array> operands);
Array einsum(std::string_view subscripts, std::initializer_list<Array> operands);
// einsum("ij,jk->ik", a, b)
template <std::derived_from<Array>... Arrays>
requires(sizeof...(Arrays) > 0) Array
    einsum(std::string_view subscripts, const Arrays&... operands) {
  return einsum(subscripts, {static_cast<const Array&>(operands)...});
}

namespace linalg {

// Which norm: none (2-norm of all elements, Frobenius for matrices), a number or "fro".
struct NormOrder {
  // Which of the three forms was given, and the number.
  enum Kind : uint8_t { kDefault, kFrobenius, kNumber };
  Kind kind = kDefault;
  double p = 2;  // of kNumber

  NormOrder() = default;
  template <class T>
  requires std::is_arithmetic_v<T> NormOrder(T number) : kind(kNumber), p(double(number)) {}
  NormOrder(const char* name);  // "fro"; ValueError for others
};

// Without an order: sqrt of the sum of squares over the axes, any number of them (none: all).
// One axis: (sum |x|^p)^(1/p); 0 counts the elements that are not 0, +-infinity is the largest or
// smallest magnitude. Two axes (or a 2-d array): "fro"; +-1 and +-infinity, the largest or smallest
// sum of magnitudes of a column or row. The 2-norm and nuclear norm of matrices need a
// decomposition, which is not implemented (ValueError). Integers give float64.
Array norm(const Array& x, const NormOrder& order = {}, const AxisList& axes = none,
           YesNo keepdims = false);

}  // namespace linalg

}  // namespace catena
