// Views, joins, splits and rearrangements.
#include "catena/array/manipulation.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

// Integer parameter "sections", else the list "positions".
Results parts(const Call& c) {
  if (c.has("sections")) return split(c.array(0), c.integer("sections"), c.integer("axis"));
  return split(c.array(0), c.dims("positions"), c.integer("axis"));
}

void add_shapes(Routines& r) {
  r["reshape"] = [](const Call& c) { return Results{reshape(c.array(0), c.dims("shape"))}; };
  r["ravel"] = [](const Call& c) { return Results{ravel(c.array(0))}; };
  r["flatten"] = [](const Call& c) { return Results{c.array(0).flatten()}; };
  r["transpose"] = [](const Call& c) { return Results{transpose(c.array(0), c.dims("axes"))}; };
  r["swapaxes"] = [](const Call& c) {
    return Results{swapaxes(c.array(0), c.integer("axis1"), c.integer("axis2"))};
  };
  r["rollaxis"] = [](const Call& c) {
    return Results{rollaxis(c.array(0), c.integer("axis"), c.integer("start"))};
  };
  r["moveaxis"] = [](const Call& c) {
    return Results{moveaxis(c.array(0), c.integer("source"), c.integer("destination"))};
  };
  r["squeeze"] = [](const Call& c) { return Results{squeeze(c.array(0), c.dims("axis"))}; };
  r["expand_dims"] = [](const Call& c) {
    return Results{expand_dims(c.array(0), c.integer("axis"))};
  };
  r["broadcast_to"] = [](const Call& c) {
    return Results{broadcast_to(c.array(0), c.dims("shape"))};
  };
  r["broadcast_arrays"] = [](const Call& c) { return broadcast_arrays(c.arrays()); };
  r["atleast_1d"] = [](const Call& c) { return Results{atleast_1d(c.array(0))}; };
  r["atleast_2d"] = [](const Call& c) { return Results{atleast_2d(c.array(0))}; };
  r["atleast_3d"] = [](const Call& c) { return Results{atleast_3d(c.array(0))}; };
}

}  // namespace

void add_manipulation(Routines& r) {
  add_shapes(r);
  r["concatenate"] = [](const Call& c) {
    return Results{concatenate(c.arrays(), c.integer("axis"))};
  };
  r["stack"] = [](const Call& c) { return Results{stack(c.arrays(), c.integer("axis"))}; };
  r["vstack"] = [](const Call& c) { return Results{vstack(c.arrays())}; };
  r["hstack"] = [](const Call& c) { return Results{hstack(c.arrays())}; };
  r["dstack"] = [](const Call& c) { return Results{dstack(c.arrays())}; };
  r["split"] = parts;
  r["array_split"] = [](const Call& c) {
    return array_split(c.array(0), c.integer("sections"), c.integer("axis"));
  };
  r["tile"] = [](const Call& c) { return Results{tile(c.array(0), c.dims("repetitions"))}; };
  r["repeat"] = [](const Call& c) {
    return Results{repeat(c.array(0), c.integer("count"), c.integer("axis"))};
  };
  r["roll"] = [](const Call& c) {
    return Results{roll(c.array(0), c.integer("shift"), c.integer("axis"))};
  };
  r["flip"] = [](const Call& c) { return Results{flip(c.array(0), c.dims("axis"))}; };
  r["flipud"] = [](const Call& c) { return Results{flipud(c.array(0))}; };
  r["fliplr"] = [](const Call& c) { return Results{fliplr(c.array(0))}; };
  r["rot90"] = [](const Call& c) { return Results{rot90(c.array(0), c.integer("times"))}; };
}

}  // namespace catena::oracle
