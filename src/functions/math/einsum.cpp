// einsum: the contraction that arrays have, by operations of variables.
#include "catena/functions/math/einsum.h"

#include <algorithm>

#include "array/einsum_terms.h"
#include "catena/core/entry_scope.h"
#include "catena/functions/array/broadcast.h"
#include "catena/functions/array/diagonal.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/transpose.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/math/matmul.h"
#include "catena/functions/math/sum.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

constexpr const char* kName = "Einsum";

struct VariableOperations {
  static Variable diagonal(const Variable& x, int64_t i, int64_t j) {
    return functions::diagonal(x, 0, i, j);
  }
  static Variable transpose(const Variable& x, const Axes& order) {
    return std::is_sorted(order.begin(), order.end()) ? x : functions::transpose(x, order);
  }
  static Variable reshape(const Variable& x, const Shape& shape) {
    return functions::reshape(x, shape);
  }
  static Variable broadcast_to(const Variable& x, const Shape& shape) {
    return functions::broadcast_to(x, shape);
  }
  static Variable multiply(const Variable& x, const Variable& y) { return x * y; }
  static Variable product(const Variable& x, const Variable& y) {
    return x.ndim() == 2 ? matmul(x, y) : batch_matmul(x, y);
  }
  static Variable sum(const Variable& x, const Axes& axes) {
    return functions::sum(x, AxisList(axes));
  }
};

void check_types(const FunctionCall& call) {
  const TypeOf first(call[0].data(), "operands", 0);
  Checks(call.named(), first).require_float(first);
  for (size_t i = 1; i < call.size(); ++i) {
    const TypeOf other(call[i].data(), "operands", static_cast<int>(i));
    const Checks checks(call.named(), first, other);
    checks.require_float(other);
    checks.advised([&] { return dtype_advice(call[0].data(), call[i].data()); })
        .require(other.dtype() == first.dtype());
  }
  call.require_one_device();
}

}  // namespace

Variable einsum(std::string_view subscripts, const Variables& operands) {
  const EntryScope entry(kName);
  CATENA_CHECK(ValueError, !operands.empty(), "'", subscripts, "': expected at least one operand");
  FunctionCall call(kName, Autocast::kLow, operands);
  check_types(call);
  std::vector<Shape> shapes;
  Variables terms;
  for (const Variable* x : call.inputs()) {
    shapes.push_back(x->shape());
    terms.push_back(*x);
  }
  using einsum_terms::Contraction;
  return Contraction<Variable, VariableOperations>::of(
      einsum_terms::read_subscripts(subscripts, shapes), terms);
}

}  // namespace catena::functions
