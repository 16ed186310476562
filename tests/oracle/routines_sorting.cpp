// Sorting, searching, scans and counting.
#include "catena/array/scan.h"
#include "catena/array/sorting.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

ReduceOptions options_of(const Call& c) {
  return {.axes = c.dims("axis"), .keepdims = c.flag("keepdims")};
}

std::vector<double> reals(const Value& value) {
  std::vector<double> result;
  for (const Value& v : value.list)
    result.push_back(v.kind == Value::Kind::kInteger ? double(v.integer) : v.real);
  return result;
}

Results pair(const std::pair<Array, Array>& both) { return {both.first, both.second}; }

}  // namespace

void add_sorting(Routines& r) {
  r["sort"] = [](const Call& c) { return Results{sort(c.array(0), c.optional_integer("axis"))}; };
  r["argsort"] = [](const Call& c) {
    return Results{argsort(c.array(0), c.optional_integer("axis"))};
  };
  r["topk"] = [](const Call& c) {
    return pair(topk(c.array(0), c.integer("k"), c.integer("axis"), c.flag("largest")));
  };
  r["unique"] = [](const Call& c) {
    const Unique u = unique(c.array(0), {true, true, true});
    return Results{u.values, u.index, u.inverse, u.counts};
  };
  r["searchsorted"] = [](const Call& c) {
    return Results{searchsorted(c.array(0), c.operand(1), c.flag("right"))};
  };
  r["digitize"] = [](const Call& c) {
    return Results{digitize(c.array(0), c.array(1), c.flag("right"))};
  };
  r["cumsum"] = [](const Call& c) {
    return Results{cumsum(c.array(0), c.optional_integer("axis"), c.dtype())};
  };
  r["cumprod"] = [](const Call& c) {
    return Results{cumprod(c.array(0), c.optional_integer("axis"), c.dtype())};
  };
  r["diff"] = [](const Call& c) {
    return Results{diff(c.array(0), c.integer("n"), c.integer("axis"))};
  };
  r["nonzero"] = [](const Call& c) { return nonzero(c.array(0)); };
  r["argwhere"] = [](const Call& c) { return Results{argwhere(c.array(0))}; };
  r["bincount"] = [](const Call& c) {
    std::optional<Array> weights;
    if (c.count() > 1) weights = c.array(1);
    return Results{bincount(c.array(0), weights, c.integer("minlength"))};
  };
  r["histogram"] = [](const Call& c) {
    std::optional<std::pair<double, double>> range;
    if (c.has("low")) range = std::pair(c.real("low"), c.real("high"));
    return pair(histogram(c.array(0), c.integer("bins"), range));
  };
  r["histogram_edges"] = [](const Call& c) { return pair(histogram(c.array(0), c.array(1))); };
  r["median"] = [](const Call& c) { return Results{median(c.array(0), options_of(c))}; };
  r["percentile"] = [](const Call& c) {
    return Results{percentile(c.array(0), reals(c.parameter("q")), options_of(c))};
  };
}

}  // namespace catena::oracle
