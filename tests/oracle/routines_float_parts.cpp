// Floats taken apart and put together, quotients with remainders, and other shapes of a handle.
#include "catena/array/float_parts.h"

#include "catena/array/manipulation.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

// The two arrays from argument "outs" on, and the dtype; nothing that is not given.
OutPair outs_of(const Call& c) {
  OutPair out;
  if (c.has("outs")) {
    const auto k = static_cast<size_t>(c.integer("outs"));
    out = {c.array(k), c.array(k + 1)};
  }
  out.dtype = c.dtype();
  return out;
}

Out out_of(const Call& c) {
  Out out;
  out.array = c.out_array();
  out.dtype = c.dtype();
  return out;
}

Results both(const std::pair<Array, Array>& results) { return {results.first, results.second}; }

}  // namespace

void add_float_parts(Routines& r) {
  r["modf"] = [](const Call& c) { return both(modf(c.operand(0), outs_of(c))); };
  r["frexp"] = [](const Call& c) { return both(frexp(c.operand(0), outs_of(c))); };
  r["divmod"] = [](const Call& c) { return both(divmod(c.operand(0), c.operand(1), outs_of(c))); };
  r["ldexp"] = [](const Call& c) { return Results{ldexp(c.operand(0), c.operand(1), out_of(c))}; };
  r["nextafter"] = [](const Call& c) {
    return Results{nextafter(c.operand(0), c.operand(1), out_of(c))};
  };
  r["atleast_several"] = [](const Call& c) {
    const std::vector<Array> arrays = c.arrays();
    const int64_t ndim = c.integer("ndim");
    return ndim == 1 ? atleast_1d(arrays) : ndim == 2 ? atleast_2d(arrays) : atleast_3d(arrays);
  };
  r["set_shape"] = [](const Call& c) {
    Array handle = c.array(0);
    handle.set_shape(c.dims("shape"));
    return Results{handle};
  };
}

}  // namespace catena::oracle
