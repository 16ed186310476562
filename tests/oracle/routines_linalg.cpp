// Products.
#include "catena/array/linalg.h"
#include "oracle/oracle.h"

namespace catena::oracle {

void add_linalg(Routines& r) {
  r["matmul"] = [](const Call& c) { return Results{matmul(c.array(0), c.array(1), c.out())}; };
  r["dot"] = [](const Call& c) { return Results{dot(c.array(0), c.array(1), c.out())}; };
  r["vdot"] = [](const Call& c) { return Results{vdot(c.array(0), c.array(1))}; };
  r["inner"] = [](const Call& c) { return Results{inner(c.array(0), c.array(1))}; };
  r["outer"] = [](const Call& c) { return Results{outer(c.array(0), c.array(1))}; };
  r["tensordot"] = [](const Call& c) {
    if (c.has("axes_a"))
      return Results{tensordot(c.array(0), c.array(1), c.dims("axes_a"), c.dims("axes_b"))};
    return Results{tensordot(c.array(0), c.array(1), c.integer("axes"))};
  };
  r["trace"] = [](const Call& c) {
    return Results{trace(c.array(0), c.integer("offset"), c.integer("axis1"), c.integer("axis2"))};
  };
}

}  // namespace catena::oracle
