#include "catena/array/math.h"

#include "catena/array/elementwise.h"
#include "catena/array/indexing.h"
#include "catena/core/entry_scope.h"
#include "kernels/elementwise_rows.h"

namespace catena {

#define CATENA_EW1(functor, name, ...)                    \
  Array name(const Operand& x, const Out& out) {          \
    return elementwise(ElementwiseOp::k##name, {x}, out); \
  }
#define CATENA_EW2(functor, name, ...)                               \
  Array name(const Operand& x1, const Operand& x2, const Out& out) { \
    return elementwise(ElementwiseOp::k##name, {x1, x2}, out);       \
  }
#define CATENA_EW3(functor, name, ...)                                                  \
  Array name(const Operand& x1, const Operand& x2, const Operand& x3, const Out& out) { \
    return elementwise(ElementwiseOp::k##name, {x1, x2, x3}, out);                      \
  }
// indexing.h declares where() with another argument list.
static Array where(const Operand& c, const Operand& x, const Operand& y, const Out& out);
#include "catena/kernels/detail/elementwise_arithmetic.def"
#include "catena/kernels/detail/elementwise_logic.def"
#include "catena/kernels/detail/elementwise_math.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3

Array clip(const Operand& x, std::nullopt_t, const Operand& high, const Out& out) {
  const EntryScope call("clip");
  return minimum(x, high, out);
}
Array clip(const Operand& x, const Operand& low, std::nullopt_t, const Out& out) {
  const EntryScope call("clip");
  return maximum(x, low, out);
}

Array where(const Array& condition, const Operand& x, const Operand& y) {
  return where(Operand(condition), x, y, Out());
}

}  // namespace catena
