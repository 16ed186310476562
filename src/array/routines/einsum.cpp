// Einstein's summation by permutation, reduction and batched matrix products.
#include "array/einsum_terms.h"
#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

// Of arrays.
struct ArrayOperations {
  static Array diagonal(const Array& a, int64_t i, int64_t j) { return a.diagonal(0, i, j); }
  static Array transpose(const Array& a, const Axes& order) { return a.transpose(order); }
  static Array reshape(const Array& a, const Shape& shape) { return a.reshape(shape); }
  static Array broadcast_to(const Array& a, const Shape& shape) { return a.broadcast_to(shape); }
  static Array multiply(const Array& a, const Array& b) { return catena::multiply(a, b); }
  static Array product(const Array& a, const Array& b) { return matmul(a, b); }
  // In the array's dtype. The sum of truth values is "or".
  static Array sum(const Array& a, const Axes& axes) {
    ReduceOptions options;
    options.axes = axes;
    options.dtype = a.dtype();
    return a.dtype() == Dtype::kBool ? any(a, options) : catena::sum(a, options);
  }
};

}  // namespace

Array einsum(std::string_view subscripts, std::span<const Array> operands) {
  using namespace einsum_terms;
  const EntryScope call("einsum");
  CATENA_CHECK(ValueError, !operands.empty(), "'", subscripts, "': expected at least one operand");
  for (const Array& a : operands) check_defined(a);
  for (const Array& a : operands) check_same_device(operands[0], a);
  std::vector<Shape> shapes;
  Dtype dtype = operands[0].dtype();
  for (const Array& a : operands) {
    shapes.push_back(a.shape());
    dtype = promote(dtype, a.dtype());
  }
  std::vector<Array> terms;
  for (const Array& a : operands) terms.push_back(a.astype(dtype, false));
  return Contraction<Array, ArrayOperations>::of(read_subscripts(subscripts, shapes), terms);
}

Array einsum(std::string_view subscripts, std::initializer_list<Array> operands) {
  return einsum(subscripts, std::span<const Array>(operands.begin(), operands.size()));
}

}  // namespace catena
