// Element-wise routines: one entry for each name in kernels/detail/elementwise_names.def.
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "oracle/oracle.h"

namespace catena::oracle {

void add_elementwise(Routines& r) {
// The functions of math.h; `where` has another form.
#define CATENA_NAME1(name) \
  r[#name] = [](const Call& c) { return Results{catena::name(c.operand(0), c.out())}; };
#define CATENA_NAME2(name)                                             \
  r[#name] = [](const Call& c) {                                       \
    return Results{catena::name(c.operand(0), c.operand(1), c.out())}; \
  };
#define CATENA_NAME3(name) /* clip and where, below */
#include "catena/kernels/detail/elementwise_names.def"
  r["clip"] = [](const Call& c) {
    return Results{clip(c.operand(0), c.operand(1), c.operand(2), c.out())};
  };
  r["where"] = [](const Call& c) { return Results{where(c.array(0), c.operand(1), c.operand(2))}; };
}

}  // namespace catena::oracle
