// Reductions and arg-reductions.
#include "catena/array/creation.h"
#include "catena/array/reduction.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

ReduceOptions options_of(const Call& c) {
  ReduceOptions options{.keepdims = c.flag("keepdims"), .dtype = c.dtype()};
  if (const Array* out = c.out_array()) options.out = *out;
  return options;
}
// Of a reduction over `axis`, and of one along it.
ReduceOptions over_axes(const Call& c) {
  ReduceOptions options = options_of(c);
  options.axes = c.dims("axis");
  return options;
}
ReduceOptions along_axis(const Call& c) {
  ReduceOptions options = options_of(c);
  options.axes = c.optional_integer("axis");
  return options;
}

}  // namespace

void add_reduction(Routines& r) {
#define CATENA_REDUCTION(name) \
  r[#name] = [](const Call& c) { return Results{catena::name(c.array(0), over_axes(c))}; };
  CATENA_REDUCTION(sum)
  CATENA_REDUCTION(prod)
  CATENA_REDUCTION(mean)
  CATENA_REDUCTION(amax)
  CATENA_REDUCTION(amin)
  CATENA_REDUCTION(all)
  CATENA_REDUCTION(any)
#undef CATENA_REDUCTION
  r["var"] = [](const Call& c) {
    return Results{var(c.array(0), over_axes(c), c.integer("ddof", 0))};
  };
  r["std"] = [](const Call& c) {
    return Results{catena::std(c.array(0), over_axes(c), c.integer("ddof", 0))};
  };
  r["argmax"] = [](const Call& c) { return Results{argmax(c.array(0), along_axis(c))}; };
  r["argmin"] = [](const Call& c) { return Results{argmin(c.array(0), along_axis(c))}; };
  r["count_nonzero"] = [](const Call& c) {
    return Results{scalar_array(count_nonzero(c.array(0)))};
  };
  r["sum_to"] = [](const Call& c) { return Results{sum_to(c.array(0), c.dims("shape"))}; };
}

}  // namespace catena::oracle
