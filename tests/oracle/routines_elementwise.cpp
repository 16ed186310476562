// Element-wise routines: one entry for each row of the tables in catena/array/detail.
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "oracle/oracle.h"

namespace catena::oracle {

void add_elementwise(Routines& r) {
// The rows with a function in math.h; `where` has another form, gradients have no counterpart.
#define CATENA_EW1(functor, name, ...) \
  r[#name] = [](const Call& c) { return Results{catena::name(c.operand(0), c.out())}; };
#define CATENA_EW2(functor, name, ...)                                 \
  r[#name] = [](const Call& c) {                                       \
    return Results{catena::name(c.operand(0), c.operand(1), c.out())}; \
  };
#define CATENA_EW3(functor, name, ...) /* clip and where, below */
#include "catena/kernels/detail/elementwise_arithmetic.def"
#include "catena/kernels/detail/elementwise_logic.def"
#include "catena/kernels/detail/elementwise_math.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
  r["clip"] = [](const Call& c) {
    return Results{clip(c.operand(0), c.operand(1), c.operand(2), c.out())};
  };
  r["where"] = [](const Call& c) { return Results{where(c.array(0), c.operand(1), c.operand(2))}; };
}

}  // namespace catena::oracle
