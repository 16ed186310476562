// Creation of arrays, copies and casts.
#include "catena/array/creation.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

ArrayOptions options_of(const Call& c) {
  ArrayOptions options;
  options.dtype = c.dtype();
  return options;
}

}  // namespace

void add_creation(Routines& r) {
  r["zeros"] = [](const Call& c) { return Results{zeros(c.dims("shape"), options_of(c))}; };
  r["ones"] = [](const Call& c) { return Results{ones(c.dims("shape"), options_of(c))}; };
  // Values are arbitrary; NumPy's side has zeros.
  r["empty"] = [](const Call& c) {
    const Array a = empty(c.dims("shape"), options_of(c));
    a.fill(0);
    return Results{a};
  };
  r["empty_like"] = [](const Call& c) {
    const Array a = empty_like(c.array(0), options_of(c));
    a.fill(0);
    return Results{a};
  };
  r["full"] = [](const Call& c) {
    return Results{full(c.dims("shape"), c.scalar(0), options_of(c))};
  };
  r["zeros_like"] = [](const Call& c) { return Results{zeros_like(c.array(0), options_of(c))}; };
  r["ones_like"] = [](const Call& c) { return Results{ones_like(c.array(0), options_of(c))}; };
  r["full_like"] = [](const Call& c) {
    return Results{full_like(c.array(0), c.scalar(1), options_of(c))};
  };
  r["arange"] = [](const Call& c) {
    return Results{c.count() == 1 ? arange(c.scalar(0), options_of(c))
                                  : arange(c.scalar(0), c.scalar(1), c.scalar(2), options_of(c))};
  };
  r["linspace"] = [](const Call& c) {
    return Results{linspace(c.real("start"), c.real("stop"), c.integer("count"), c.flag("endpoint"),
                            options_of(c))};
  };
  r["eye"] = [](const Call& c) {
    return Results{
        eye(c.integer("rows"), c.optional_integer("columns"), c.integer("k"), options_of(c))};
  };
  r["identity"] = [](const Call& c) { return Results{identity(c.integer("n"), options_of(c))}; };
  r["diag"] = [](const Call& c) { return Results{diag(c.array(0), c.integer("k"))}; };
  r["scalar_array"] = [](const Call& c) {
    return Results{scalar_array(c.scalar(0), options_of(c))};
  };
  r["copy"] = [](const Call& c) { return Results{c.array(0).copy()}; };
  r["assign"] = [](const Call& c) {
    c.array(0).assign(c.array(1));
    return Results{c.array(0)};
  };
  r["fill"] = [](const Call& c) {
    c.array(0).fill(c.scalar(1));
    return Results{c.array(0)};
  };
  r["astype"] = [](const Call& c) {
    return Results{c.array(0).astype(*c.dtype(), c.flag("copy"))};
  };
}

}  // namespace catena::oracle
