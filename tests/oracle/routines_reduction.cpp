// Reductions and arg-reductions.
#include "catena/array/creation.h"
#include "catena/array/reduction.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

ReduceOptions options_of(const Call& c) {
  ReduceOptions options(c.dims("axis"), c.flag("keepdims"));
  options.dtype = c.dtype();
  options.out = c.out_array();
  return options;
}

}  // namespace

void add_reduction(Routines& r) {
#define CATENA_REDUCTION(name) \
  r[#name] = [](const Call& c) { return Results{catena::name(c.array(0), options_of(c))}; };
  CATENA_REDUCTION(sum)
  CATENA_REDUCTION(prod)
  CATENA_REDUCTION(mean)
  CATENA_REDUCTION(amax)
  CATENA_REDUCTION(amin)
  CATENA_REDUCTION(all)
  CATENA_REDUCTION(any)
#undef CATENA_REDUCTION
  r["var"] = [](const Call& c) {
    return Results{var(c.array(0), options_of(c), c.integer("ddof", 0))};
  };
  r["std"] = [](const Call& c) {
    return Results{catena::std(c.array(0), options_of(c), c.integer("ddof", 0))};
  };
  r["argmax"] = [](const Call& c) {
    if (c.has("dtype") || c.has("out"))
      return Results{argmax(c.array(0), c.optional_integer("axis"), c.flag("keepdims"), c.out())};
    return Results{argmax(c.array(0), c.optional_integer("axis"), c.flag("keepdims"))};
  };
  r["argmin"] = [](const Call& c) {
    if (c.has("dtype") || c.has("out"))
      return Results{argmin(c.array(0), c.optional_integer("axis"), c.flag("keepdims"), c.out())};
    return Results{argmin(c.array(0), c.optional_integer("axis"), c.flag("keepdims"))};
  };
  r["count_nonzero"] = [](const Call& c) {
    return Results{scalar_array(count_nonzero(c.array(0)))};
  };
  r["sum_to"] = [](const Call& c) { return Results{sum_to(c.array(0), c.dims("shape"))}; };
}

}  // namespace catena::oracle
