// Statistics and calculus of numbers that fill their type. Parameter "name" chooses the statistic.
#include "catena/array/calculus.h"
#include "catena/array/linalg.h"
#include "catena/array/statistics.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

Results statistic(const Call& c) {
  ReduceOptions options{.axes = c.dims("axis"), .keepdims = c.flag("keepdims")};
  if (c.has("initial")) options.initial = c.integer("initial");
  const Array& x = c.array(0);
  const std::string name = c.parameter("name").text;
  if (name == "average") return {average(x, c.array(1), options)};
  if (name == "percentile") return {percentile(x, c.real("q"), options)};
  if (name == "nanpercentile") return {nanpercentile(x, c.real("q"), options)};
  if (name == "var") return {var(x, options)};
  if (name == "std") return {catena::std(x, options)};
  if (name == "nanvar") return {nanvar(x, options)};
  if (name == "nanstd") return {nanstd(x, options)};
  using Function = Array (*)(const Array&, const ReduceOptions&);
  static const std::map<std::string, Function> functions{
      {"mean", mean},     {"nanmean", nanmean},     {"sum", sum}, {"nansum", nansum},
      {"median", median}, {"nanmedian", nanmedian}, {"ptp", ptp}};
  return {functions.at(name)(x, options)};
}

}  // namespace

void add_narrow(Routines& r) {
  r["narrow_statistic"] = statistic;
  r["narrow_norm"] = [](const Call& c) {
    return Results{linalg::norm(c.array(0), c.real("p"), c.integer("axis"))};
  };
  r["narrow_gradient"] = [](const Call& c) {
    return Results{gradient(c.array(0), c.array(1), c.integer("axis"))};
  };
  r["narrow_trapezoid"] = [](const Call& c) {
    return Results{trapezoid(c.array(0), c.array(1), c.integer("axis"))};
  };
}

}  // namespace catena::oracle
