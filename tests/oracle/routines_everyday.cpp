// Masks as arguments, positions along axes, sets, element-wise numerics, calculus, statistics.
// Parameter "name" chooses the function where cases of several are made by one generator.
#include "catena/array/along_axis.h"
#include "catena/array/calculus.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/numeric.h"
#include "catena/array/sets.h"
#include "catena/array/statistics.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

ReduceOptions options_of(const Call& c) {
  return {.axes = c.dims("axis"), .keepdims = c.flag("keepdims")};
}

std::string name_of(const Call& c) { return c.parameter("name").text; }

std::optional<double> optional_real(const Call& c, const char* name) {
  return c.has(name) ? std::optional<double>(c.real(name)) : std::nullopt;
}

std::vector<int64_t> list_of(const Call& c, const char* name) {
  const Dims dims = c.dims(name);
  return {dims.begin(), dims.end()};
}

Results masked_reduction(const Call& c) {
  ReduceOptions options = options_of(c);
  if (c.count() > 1) options.where = c.array(1);
  if (c.has("initial")) options.initial = c.integer("initial");
  const Array& x = c.array(0);
  const std::string name = name_of(c);
  if (name == "sum") return {sum(x, options)};
  if (name == "prod") return {prod(x, options)};
  if (name == "amax") return {amax(x, options)};
  if (name == "amin") return {amin(x, options)};
  if (name == "all") return {all(x, options)};
  if (name == "any") return {any(x, options)};
  if (name == "mean") return {mean(x, options)};
  return {name == "var" ? var(x, options) : catena::std(x, options)};
}

Results set_operation(const Call& c) {
  const Array &a = c.array(0), &b = c.array(1);
  const std::string name = name_of(c);
  if (name == "isin") return {isin(a, b)};
  if (name == "intersect1d") return {intersect1d(a, b)};
  if (name == "union1d") return {union1d(a, b)};
  return {name == "setdiff1d" ? setdiff1d(a, b) : setxor1d(a, b)};
}

Results nan_statistic(const Call& c) {
  const Array& x = c.array(0);
  const std::string name = name_of(c);
  if (name == "nancumsum") return {nancumsum(x, c.integer("axis"))};
  if (name == "nanvar") return {nanvar(x, options_of(c), c.integer("ddof"))};
  if (name == "nanstd") return {nanstd(x, options_of(c), c.integer("ddof"))};
  if (name == "nanmedian") return {nanmedian(x, options_of(c))};
  return {nanpercentile(x, c.real("q"), options_of(c))};
}

QuantileMethod method_of(const std::string& name) {
  if (name == "lower") return QuantileMethod::kLower;
  if (name == "higher") return QuantileMethod::kHigher;
  if (name == "nearest") return QuantileMethod::kNearest;
  return name == "midpoint" ? QuantileMethod::kMidpoint : QuantileMethod::kLinear;
}

Results convolution(const Call& c) {
  const std::string mode = c.parameter("mode").text;
  const Overlap part = mode == "full"   ? Overlap::kFull
                       : mode == "same" ? Overlap::kSame
                                        : Overlap::kValid;
  return {name_of(c) == "convolve" ? convolve(c.array(0), c.array(1), part)
                                   : correlate(c.array(0), c.array(1), part)};
}

void add_writing(Routines& r) {
  r["masked_add"] = [](const Call& c) {
    return Results{add(c.array(0), c.array(1), {c.array(3), c.array(2)})};
  };
  r["put_along_axis"] = [](const Call& c) {
    put_along_axis(c.array(0), c.array(1), c.array(2), c.integer("axis"));
    return Results{c.array(0)};
  };
  r["putmask"] = [](const Call& c) {
    (name_of(c) == "place") ? place(c.array(0), c.array(1), c.array(2))
                            : putmask(c.array(0), c.array(1), c.array(2));
    return Results{c.array(0)};
  };
  r["fill_diagonal"] = [](const Call& c) {
    fill_diagonal(c.array(0), c.array(1), c.flag("wrap"));
    return Results{c.array(0)};
  };
}

void add_shapes(Routines& r) {
  r["insert"] = [](const Call& c) {
    return Results{insert(c.array(0), list_of(c, "positions"), c.array(1), c.integer("axis"))};
  };
  r["moveaxis_list"] = [](const Call& c) {
    return Results{moveaxis(c.array(0), c.dims("source"), c.dims("destination"))};
  };
  r["rot90_axes"] = [](const Call& c) {
    return Results{rot90(c.array(0), c.integer("k"), c.dims("axes"))};
  };
  r["concatenate_flat"] = [](const Call& c) { return Results{concatenate(c.arrays(), none)}; };
  r["take_along_axis"] = [](const Call& c) {
    return Results{take_along_axis(c.array(0), c.array(1), c.integer("axis"))};
  };
  r["unique_axis"] = [](const Call& c) {
    const Unique u = unique(c.array(0), {true, true, true, c.integer("axis")});
    return Results{u.values, u.index, u.inverse, u.counts};
  };
  r["lexsort"] = [](const Call& c) { return Results{lexsort(c.arrays(), c.integer("axis"))}; };
}

void add_calculus(Routines& r) {
  r["round"] = [](const Call& c) { return Results{round(c.array(0), c.integer("decimals"))}; };
  r["nan_to_num"] = [](const Call& c) {
    return Results{nan_to_num(c.array(0), double(c.integer("nan")), optional_real(c, "posinf"))};
  };
  r["heaviside"] = [](const Call& c) { return Results{heaviside(c.array(0), c.array(1))}; };
  r["divisors"] = [](const Call& c) {
    return Results{name_of(c) == "gcd" ? gcd(c.array(0), c.array(1)) : lcm(c.array(0), c.array(1))};
  };
  r["interp"] = [](const Call& c) {
    return Results{interp(c.array(0), c.array(1), c.array(2), optional_real(c, "left"),
                          optional_real(c, "right"))};
  };
  r["gradient"] = [](const Call& c) {
    const Operand spacing = c.count() > 1 ? Operand(c.array(1)) : Operand(c.real("spacing"));
    return Results{gradient(c.array(0), spacing, c.integer("axis"))};
  };
  r["trapezoid"] = [](const Call& c) {
    return Results{trapezoid(c.array(0), c.real("spacing"), c.integer("axis"))};
  };
  r["convolution"] = convolution;
  r["cross"] = [](const Call& c) {
    return Results{cross(c.array(0), c.array(1), c.integer("axis"))};
  };
}

}  // namespace

void add_everyday(Routines& r) {
  add_writing(r);
  add_shapes(r);
  add_calculus(r);
  r["masked_reduction"] = masked_reduction;
  r["count_nonzero_axis"] = [](const Call& c) {
    return Results{count_nonzero(c.array(0), options_of(c))};
  };
  r["set_operation"] = set_operation;
  r["nan_statistic"] = nan_statistic;
  r["nan_positions"] = [](const Call& c) {
    const auto axis = c.optional_integer("axis");
    return Results{name_of(c) == "nanargmax" ? nanargmax(c.array(0), axis)
                                             : nanargmin(c.array(0), axis)};
  };
  r["cov"] = [](const Call& c) {
    return Results{cov(c.array(0), {.rowvar = c.flag("rowvar"), .bias = c.flag("bias")})};
  };
  r["percentile_method"] = [](const Call& c) {
    return Results{
        percentile(c.array(0), c.real("q"), options_of(c), method_of(c.parameter("method").text))};
  };
  r["histogram_weighted"] = [](const Call& c) {
    return Results{
        histogram(c.array(0), c.array(2), {.weights = c.array(1), .density = c.flag("density")})
            .first};
  };
}

}  // namespace catena::oracle
