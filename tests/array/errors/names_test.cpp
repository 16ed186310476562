// Errors name the function that was called: every element-wise function and reduction with each
// kind of mistake, and the other routines with a wrong shape, axis, dtype, device and no value at
// all.
#include <functional>

#include "array/devices.h"
#include "catena/array/along_axis.h"
#include "catena/array/bits.h"
#include "catena/array/calculus.h"
#include "catena/array/casting.h"
#include "catena/array/creation.h"
#include "catena/array/float_parts.h"
#include "catena/array/host_view.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/numeric.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/array/sets.h"
#include "catena/array/sorting.h"
#include "catena/array/statistics.h"

namespace catena {
namespace {

struct Operands {
  Array a = ones({2, 3}), b = ones({4, 5}), v = ones({3}), w = ones({4}), empty = ones({0}),
        point = ones({}), none_at_all;
  Array there = ones({2, 3}, {Dtype::kFloat64, cpu(1)}), list_there = ones({3}, {cpu(1)});
  Array mask = ones({2, 3}, Dtype::kBool), positions = array({0, 1, 2}), far = array({0, 9});
  Array bytes = ones({3}, Dtype::kInt8), fixed = v.broadcast_to({2, 3});
};

void expect_named(const std::string& name, const char* what, const std::function<void()>& call) {
  const std::string text = error_of<Error>(call);
  EXPECT_EQ(text.rfind(name + ": ", 0), 0u) << name << " (" << what << ") says: " << text;
}

struct Unary {
  const char* name;
  std::function<Array(const Operand&, const Out&)> call;
};
struct Binary {
  const char* name;
  std::function<Array(const Operand&, const Operand&, const Out&)> call;
};

const std::vector<Unary>& unary_functions() {
  static const std::vector<Unary> all = {
#define CATENA_NAME1(name) \
  {#name, [](const Operand& x, const Out& out) { return catena::name(x, out); }},
#define CATENA_NAME2(name)
#define CATENA_NAME3(name)
#include "catena/kernels/detail/elementwise_names.def"
  };
  return all;
}

const std::vector<Binary>& binary_functions() {
  static const std::vector<Binary> all = {
#define CATENA_NAME1(name)
#define CATENA_NAME2(name) \
  {#name,                  \
   [](const Operand& x, const Operand& y, const Out& out) { return catena::name(x, y, out); }},
#define CATENA_NAME3(name)
#include "catena/kernels/detail/elementwise_names.def"
  };
  return all;
}

TEST(ErrorNamesEverywhere, Elementwise) {
  const Operands o;
  for (const Unary& f : unary_functions()) {
    expect_named(f.name, "no value", [&] { f.call(o.none_at_all, {}); });
    expect_named(f.name, "shape of out", [&] { f.call(o.a, o.b); });
    expect_named(f.name, "device of out", [&] { f.call(o.a, o.there); });
    expect_named(f.name, "fixed out", [&] { f.call(o.a, o.fixed); });
  }
  for (const Binary& f : binary_functions()) {
    expect_named(f.name, "no value", [&] { f.call(o.a, o.none_at_all, {}); });
    expect_named(f.name, "shapes", [&] { f.call(o.a, o.b, {}); });
    expect_named(f.name, "devices", [&] { f.call(o.a, o.there, {}); });
    expect_named(f.name, "shape of out", [&] { f.call(o.a, o.v, o.b); });
    expect_named(f.name, "fixed out", [&] { f.call(o.a, o.v, o.fixed); });
  }
}

struct Reduction {
  const char* name;
  std::function<Array(const Array&, const ReduceOptions&)> call;
  bool takes_initial = false;
};
#define CATENA_REDUCTION(name, ...)                                                       \
  {                                                                                       \
#name, [](const Array& a, const ReduceOptions& o) { return name(a, o); }, __VA_ARGS__ \
  }

TEST(ErrorNamesEverywhere, Reductions) {
  const Operands o;
  const Reduction all_of[] = {
      CATENA_REDUCTION(sum, true),
      CATENA_REDUCTION(prod, true),
      CATENA_REDUCTION(mean, false),
      CATENA_REDUCTION(var, false),
      CATENA_REDUCTION(std, false),
      CATENA_REDUCTION(amax, true),
      CATENA_REDUCTION(amin, true),
      CATENA_REDUCTION(ptp, false),
      CATENA_REDUCTION(all, false),
      CATENA_REDUCTION(any, false),
      CATENA_REDUCTION(nansum, true),
      CATENA_REDUCTION(nanprod, true),
      CATENA_REDUCTION(nanmean, false),
      CATENA_REDUCTION(nanmax, true),
      CATENA_REDUCTION(nanmin, true),
      CATENA_REDUCTION(nanvar, false),
      CATENA_REDUCTION(nanstd, false),
      CATENA_REDUCTION(median, false),
      CATENA_REDUCTION(nanmedian, false),
      CATENA_REDUCTION(average, false),
      CATENA_REDUCTION(count_nonzero, false),
  };
  for (const Reduction& f : all_of) {
    expect_named(f.name, "axis twice", [&] { f.call(o.a, {.axes = {0, 0}}); });
    expect_named(f.name, "no value", [&] { f.call(o.none_at_all, {}); });
    expect_named(f.name, "shape of out", [&] { f.call(o.a, {.out = o.b}); });
    expect_named(f.name, "no out", [&] { f.call(o.a, {.out = o.none_at_all}); });
    expect_named(f.name, "no where", [&] { f.call(o.a, {.where = o.none_at_all}); });
    expect_named(f.name, "where", [&] { f.call(o.a, {.where = o.b}); });
    expect_named(f.name, "dtype of where", [&] { f.call(o.a, {.where = o.a}); });
    if (!f.takes_initial) {
      expect_named(f.name, "initial", [&] { f.call(o.a, {.initial = 1}); });
    } else {
      const ReduceOptions large{.dtype = Dtype::kInt8, .initial = 1000};
      expect_named(f.name, "initial that does not fit", [&] { f.call(o.bytes, large); });
    }
  }
}
#undef CATENA_REDUCTION

struct Mistake {
  const char* name;
  const char* text;
  std::function<void(const Operands&)> call;
};
#define CATENA_MISTAKE(name, ...)                                      \
  {                                                                    \
    name, #__VA_ARGS__, [](const Operands& o) { (void)(__VA_ARGS__); } \
  }

const Mistake kMistakes[] = {
    // Joining and moving
    CATENA_MISTAKE("concatenate", concatenate({o.a, o.b})),
    CATENA_MISTAKE("concatenate", concatenate({o.a, o.there})),
    CATENA_MISTAKE("concatenate", concatenate({o.a, o.none_at_all})),
    CATENA_MISTAKE("split", split(o.a, int64_t{0})),
    CATENA_MISTAKE("reshape", reshape(o.a, {5})),
    CATENA_MISTAKE("reshape", o.a.reshape({5})),
    CATENA_MISTAKE("reshape", reshape(o.none_at_all, {5})),
    CATENA_MISTAKE("ravel", ravel(o.none_at_all)),
    CATENA_MISTAKE("transpose", transpose(o.a, {0})),
    CATENA_MISTAKE("transpose", transpose(o.none_at_all)),
    CATENA_MISTAKE("rollaxis", rollaxis(o.a, 0, 9)),
    CATENA_MISTAKE("moveaxis", moveaxis(o.a, {0, 1}, {0})),
    CATENA_MISTAKE("squeeze", squeeze(o.a, {0})),
    CATENA_MISTAKE("expand_dims", expand_dims(o.a, {0, 0})),
    CATENA_MISTAKE("broadcast_to", broadcast_to(o.a, {5})),
    CATENA_MISTAKE("broadcast_to", broadcast_to(o.none_at_all, {5})),
    CATENA_MISTAKE("broadcast_arrays", broadcast_arrays({{o.a, o.b}})),
    CATENA_MISTAKE("atleast_1d", atleast_1d(o.none_at_all)),
    CATENA_MISTAKE("atleast_2d", atleast_2d(o.none_at_all)),
    CATENA_MISTAKE("atleast_3d", atleast_3d(o.none_at_all)),
    CATENA_MISTAKE("pad", pad(o.a, -1)),
    CATENA_MISTAKE("pad", pad(o.none_at_all, 1)),
    CATENA_MISTAKE("tile", tile(o.a, {-1})),
    CATENA_MISTAKE("tile", tile(o.none_at_all, {2})),
    CATENA_MISTAKE("repeat", repeat(o.a, -1)),
    CATENA_MISTAKE("repeat", repeat(o.a, std::vector<int64_t>{1, 2, 3, 4}, 0)),
    CATENA_MISTAKE("repeat", repeat(o.a, o.v, 1)),
    CATENA_MISTAKE("delete_at", delete_at(o.a, 9, 0)),
    CATENA_MISTAKE("roll", roll(o.a, {1, 2}, {0})),
    CATENA_MISTAKE("fliplr", fliplr(o.v)),
    CATENA_MISTAKE("rot90", rot90(o.v)),
    CATENA_MISTAKE("rot90", rot90(o.a, 1, {0, 0})),
    // Creation
    CATENA_MISTAKE("empty", empty({-1})),
    CATENA_MISTAKE("zeros", zeros({-1})),
    CATENA_MISTAKE("ones", ones({-1})),
    CATENA_MISTAKE("full", full({-1}, 0)),
    CATENA_MISTAKE("full", full({2}, 1000, Dtype::kInt8)),
    CATENA_MISTAKE("empty_like", empty_like(o.none_at_all)),
    CATENA_MISTAKE("zeros_like", zeros_like(o.none_at_all)),
    CATENA_MISTAKE("ones_like", ones_like(o.none_at_all)),
    CATENA_MISTAKE("full_like", full_like(o.none_at_all, 1)),
    CATENA_MISTAKE("full_like", full_like(o.bytes, 1000)),
    CATENA_MISTAKE("arange", arange(0, 3, 0)),
    CATENA_MISTAKE("linspace", linspace(0, 1, -1)),
    CATENA_MISTAKE("eye", eye(-1)),
    CATENA_MISTAKE("diag", diag(ones({2, 2, 2}))),
    CATENA_MISTAKE("diag", diag(o.none_at_all)),
    CATENA_MISTAKE("diagflat", diagflat(o.none_at_all)),
    CATENA_MISTAKE("triu", triu(o.point)),
    CATENA_MISTAKE("array", array(o.none_at_all)),
    CATENA_MISTAKE("asarray", asarray(o.none_at_all)),
    CATENA_MISTAKE("ascontiguousarray", ascontiguousarray(o.none_at_all)),
    CATENA_MISTAKE("copy", copy(o.none_at_all)),
    CATENA_MISTAKE("array", array(std::vector<double>{1, 2}, Shape{3})),
    CATENA_MISTAKE("scalar_array", scalar_array(1000, Dtype::kInt8)),
    CATENA_MISTAKE("trim_zeros", trim_zeros(o.a)),
    // Products
    CATENA_MISTAKE("matmul", matmul(o.a, o.b)),
    CATENA_MISTAKE("matmul", matmul(o.a, o.point)),
    CATENA_MISTAKE("matmul", matmul(o.a, o.there)),
    CATENA_MISTAKE("matmul", matmul(o.a, o.none_at_all)),
    CATENA_MISTAKE("matmul", matmul(o.a, o.v, o.a)),
    CATENA_MISTAKE("dot", dot(o.a, o.b)),
    CATENA_MISTAKE("dot", dot(o.a, o.there)),
    CATENA_MISTAKE("dot", dot(o.a, o.none_at_all)),
    CATENA_MISTAKE("dot", dot(o.a, o.v, o.a)),
    CATENA_MISTAKE("dot", dot(o.a, o.point, o.v)),
    CATENA_MISTAKE("vdot", vdot(o.a, o.b)),
    CATENA_MISTAKE("vdot", vdot(o.a, o.there)),
    CATENA_MISTAKE("inner", inner(o.a, o.b)),
    CATENA_MISTAKE("inner", inner(o.a, o.there)),
    CATENA_MISTAKE("outer", outer(o.v, o.v, o.v)),
    CATENA_MISTAKE("tensordot", tensordot(o.a, o.b)),
    CATENA_MISTAKE("tensordot", tensordot(o.a, o.there, {0}, {0})),
    CATENA_MISTAKE("trace", trace(o.v)),
    CATENA_MISTAKE("trace", trace(o.a, 0, 0, 1, o.v)),
    CATENA_MISTAKE("einsum", einsum("ij,jk", {o.a, o.b})),
    CATENA_MISTAKE("einsum", einsum("ij,ij", {o.a, o.there})),
    CATENA_MISTAKE("einsum", einsum("ij", {o.none_at_all})),
    CATENA_MISTAKE("kron", kron(o.a, o.none_at_all)),
    CATENA_MISTAKE("linalg::norm", linalg::norm(o.none_at_all)),
    // Taking and putting
    CATENA_MISTAKE("take", take(o.a, o.far, 0)),
    CATENA_MISTAKE("take", take(o.a, o.v, 0)),
    CATENA_MISTAKE("take", take(o.a, {9}, 0)),
    CATENA_MISTAKE("take", take(o.list_there, o.positions)),
    CATENA_MISTAKE("take", take(o.none_at_all, o.positions)),
    CATENA_MISTAKE("take", o.a.take({0, 1}, 0, o.v)),
    CATENA_MISTAKE("put", put(o.a, o.far, 0)),
    CATENA_MISTAKE("put", put(o.a, o.v, 0)),
    CATENA_MISTAKE("put", put(o.fixed, o.positions, 0)),
    CATENA_MISTAKE("scatter_add", scatter_add(o.a, o.far, 1)),
    CATENA_MISTAKE("scatter_add", scatter_add(o.a, o.v, 1)),
    CATENA_MISTAKE("index", o.a.select({o.far})),
    CATENA_MISTAKE("index_get", index_get(o.a, {o.far})),
    CATENA_MISTAKE("index_get", index_get(o.a, {o.v})),
    CATENA_MISTAKE("index_put", index_put(o.a, {o.far}, 0)),
    CATENA_MISTAKE("index_put", index_put(o.a, {o.mask}, o.b)),
    CATENA_MISTAKE("index_add", index_add(o.a, {o.far}, 0)),
    CATENA_MISTAKE("compress", compress(o.a, o.a)),
    CATENA_MISTAKE("extract", extract(o.b, o.a)),
    CATENA_MISTAKE("where", where(o.mask, o.a, o.b)),
    CATENA_MISTAKE("where", where(o.mask, o.a, o.there)),
    CATENA_MISTAKE("where", where(o.none_at_all, o.a, o.a)),
    CATENA_MISTAKE("where", where(o.none_at_all)),
    CATENA_MISTAKE("choose", choose(o.v, {o.v})),
    CATENA_MISTAKE("ravel_multi_index", ravel_multi_index({{o.positions}}, {2, 3})),
    CATENA_MISTAKE("ravel_multi_index", ravel_multi_index({{o.far}}, {3})),
    CATENA_MISTAKE("unravel_index", unravel_index(o.far, {2, 3})),
    CATENA_MISTAKE("unravel_index", unravel_index(o.v, {2, 3})),
    CATENA_MISTAKE("copyto", copyto(o.a, o.b)),
    CATENA_MISTAKE("copyto", copyto(o.bytes, o.v)),
    CATENA_MISTAKE("copyto", copyto(o.fixed, o.a)),
    CATENA_MISTAKE("ix_", ix_({o.a})),
    // Sorting, scanning, counting
    CATENA_MISTAKE("sort", sort(o.none_at_all)),
    CATENA_MISTAKE("sort", sort(o.a, 0, o.b)),
    CATENA_MISTAKE("argsort", argsort(o.none_at_all)),
    CATENA_MISTAKE("topk", topk(o.a, 9)),
    CATENA_MISTAKE("unique", unique(o.none_at_all)),
    CATENA_MISTAKE("searchsorted", searchsorted(o.a, 1)),
    CATENA_MISTAKE("searchsorted", searchsorted(o.v, o.there)),
    CATENA_MISTAKE("digitize", digitize(o.v, o.a)),
    CATENA_MISTAKE("digitize", digitize(o.v, o.list_there)),
    CATENA_MISTAKE("quantile", quantile(o.a, 2.0)),
    CATENA_MISTAKE("percentile", percentile(o.a, 200.0)),
    CATENA_MISTAKE("percentile", percentile(o.none_at_all, 50.0)),
    CATENA_MISTAKE("nanquantile", nanquantile(o.a, 2.0)),
    CATENA_MISTAKE("nanpercentile", nanpercentile(o.a, 200.0)),
    CATENA_MISTAKE("argmax", argmax(o.empty)),
    CATENA_MISTAKE("argmax", argmax(o.none_at_all)),
    CATENA_MISTAKE("argmin", argmin(o.a, {.axes = 0, .out = o.b})),
    CATENA_MISTAKE("cumsum", cumsum(o.none_at_all)),
    CATENA_MISTAKE("cumsum", cumsum(o.a, 0, {}, o.b)),
    CATENA_MISTAKE("diff", diff(o.a, -1)),
    CATENA_MISTAKE("diff", diff(o.point)),
    CATENA_MISTAKE("nonzero", nonzero(o.none_at_all)),
    CATENA_MISTAKE("flatnonzero", flatnonzero(o.none_at_all)),
    CATENA_MISTAKE("argwhere", argwhere(o.none_at_all)),
    CATENA_MISTAKE("bincount", bincount(o.v)),
    CATENA_MISTAKE("bincount", bincount(o.positions, o.w)),
    CATENA_MISTAKE("bincount", bincount(o.positions, {}, -1)),
    CATENA_MISTAKE("histogram", histogram(o.v, 0)),
    CATENA_MISTAKE("histogram", histogram(o.v, o.a)),
    CATENA_MISTAKE("histogram", histogram(o.v, o.list_there)),
    CATENA_MISTAKE("average", average(o.a, o.w, 0)),
    CATENA_MISTAKE("average", average(o.a, o.none_at_all)),
    CATENA_MISTAKE("average", average(o.none_at_all, o.a)),
    CATENA_MISTAKE("count_nonzero", count_nonzero(o.none_at_all)),
    // Sets, statistics, calculus
    CATENA_MISTAKE("isin", isin(o.v, o.list_there)),
    CATENA_MISTAKE("isin", isin(o.v, o.none_at_all)),
    CATENA_MISTAKE("intersect1d", intersect1d(o.v, o.list_there)),
    CATENA_MISTAKE("union1d", union1d(o.v, o.list_there)),
    CATENA_MISTAKE("setdiff1d", setdiff1d(o.v, o.list_there)),
    CATENA_MISTAKE("setxor1d", setxor1d(o.v, o.list_there)),
    CATENA_MISTAKE("cov", cov(ones({2, 2, 2}))),
    CATENA_MISTAKE("cov", cov(o.v, o.w)),
    CATENA_MISTAKE("corrcoef", corrcoef(ones({2, 2, 2}))),
    CATENA_MISTAKE("corrcoef", corrcoef(o.v, o.w)),
    CATENA_MISTAKE("interp", interp(o.v, o.v, o.w)),
    CATENA_MISTAKE("interp", interp(o.v, o.v, o.list_there)),
    CATENA_MISTAKE("ediff1d", ediff1d(o.none_at_all)),
    CATENA_MISTAKE("vander", vander(o.a)),
    CATENA_MISTAKE("polyval", polyval(o.a, 1)),
    CATENA_MISTAKE("polyval", polyval(o.v, o.there)),
    CATENA_MISTAKE("convolve", convolve(o.a, o.v)),
    CATENA_MISTAKE("convolve", convolve(o.v, o.list_there)),
    CATENA_MISTAKE("convolve", convolve(o.v, o.empty)),
    CATENA_MISTAKE("correlate", correlate(o.a, o.v)),
    CATENA_MISTAKE("modf", modf(o.none_at_all)),
    CATENA_MISTAKE("modf", modf(o.v, Dtype::kInt32)),
    CATENA_MISTAKE("frexp", frexp(o.none_at_all)),
    CATENA_MISTAKE("frexp", frexp(o.v, {o.b, o.b})),
    CATENA_MISTAKE("ldexp", ldexp(o.v, o.v)),
    CATENA_MISTAKE("ldexp", ldexp(o.b, o.positions)),
    CATENA_MISTAKE("nextafter", nextafter(o.a, o.b)),
    CATENA_MISTAKE("nextafter", nextafter(o.a, o.there)),
    CATENA_MISTAKE("nextafter", nextafter(o.v, 1, o.there)),
    CATENA_MISTAKE("divmod", divmod(o.a, o.there)),
    CATENA_MISTAKE("argmax", argmax(o.a, {.axes = 0, .out = o.there})),
    CATENA_MISTAKE("argmin", argmin(o.a, {.axes = 7, .dtype = Dtype::kInt32})),
    CATENA_MISTAKE("as_vec", as_vec(o.none_at_all)),
    CATENA_MISTAKE("as_mat", as_mat(o.none_at_all)),
    CATENA_MISTAKE("atleast_2d", atleast_2d({o.a, o.none_at_all})),
    CATENA_MISTAKE("packbits", packbits(o.v)),
    CATENA_MISTAKE("unpackbits", unpackbits(o.v)),
    CATENA_MISTAKE("bitwise_count", bitwise_count(o.v)),
    CATENA_MISTAKE("nan_to_num", nan_to_num(o.none_at_all)),
    CATENA_MISTAKE("sinc", sinc(o.none_at_all)),
    CATENA_MISTAKE("clip", clip(o.a, o.b, 1)),
    CATENA_MISTAKE("clip", clip(o.a, 0, o.b)),
    CATENA_MISTAKE("clip", clip(o.a, 0, 1, o.b)),
    CATENA_MISTAKE("clip", clip(o.a, none, o.b)),
    CATENA_MISTAKE("clip", clip(o.a, o.there, none)),
    CATENA_MISTAKE("around", around(o.a, 0, o.b)),
    // Random numbers
    CATENA_MISTAKE("uniform", random::uniform({-1})),
    CATENA_MISTAKE("normal", random::normal({2}, 0, -1)),
    CATENA_MISTAKE("integers", random::integers({2}, 3, 3)),
    CATENA_MISTAKE("bernoulli", random::bernoulli({2}, 3)),
    CATENA_MISTAKE("permutation", random::permutation(-1)),
    CATENA_MISTAKE("permutation", random::permutation(o.point)),
    CATENA_MISTAKE("choice", random::choice(0)),
    CATENA_MISTAKE("choice", random::choice(2, {3}, false)),
    CATENA_MISTAKE("choice", random::choice(2, {3}, true, o.a)),
    CATENA_MISTAKE("choice", random::choice(o.none_at_all, {3})),
    CATENA_MISTAKE("shuffle", random::shuffle(o.point)),
    CATENA_MISTAKE("bytes", random::bytes(-1)),
    CATENA_MISTAKE("gamma", random::gamma({-1}, 1)),
    CATENA_MISTAKE("poisson", random::poisson({2}, o.v)),
    CATENA_MISTAKE("geometric", random::geometric({2}, o.none_at_all)),
    CATENA_MISTAKE("dirichlet", random::dirichlet({2}, o.none_at_all)),
    CATENA_MISTAKE("multinomial", random::multinomial({2}, 3, o.none_at_all)),
    // Made of other functions
    CATENA_MISTAKE("take_along_axis", take_along_axis(o.a, o.positions.reshape({1, 3}), 0)),
    CATENA_MISTAKE("take_along_axis", take_along_axis(o.a, array({9}), none)),
    CATENA_MISTAKE("put_along_axis", put_along_axis(o.a, o.positions.reshape({1, 3}), 1, 0)),
    CATENA_MISTAKE("put_along_axis", put_along_axis(o.a, o.positions.reshape({1, 3}) * 0, o.b, 0)),
    CATENA_MISTAKE("putmask", putmask(o.fixed, o.mask, o.v)),
    CATENA_MISTAKE("putmask", putmask(o.bytes, ones({3}, Dtype::kBool), 1000)),
    CATENA_MISTAKE("place", place(o.fixed, o.mask, o.v)),
    CATENA_MISTAKE("fill_diagonal", fill_diagonal(ones({2, 2}, Dtype::kInt8), 1000)),
    CATENA_MISTAKE("indices", indices({-1, 2})),
    CATENA_MISTAKE("select", select({o.mask}, {o.b})),
    CATENA_MISTAKE("select", select({o.mask}, {o.there})),
    CATENA_MISTAKE("piecewise", piecewise(o.bytes, {o.bytes > 0}, {1000})),
    CATENA_MISTAKE("piecewise", piecewise(o.a, {o.a}, {1})),
    CATENA_MISTAKE("round", round(o.a, 1, o.b)),
    CATENA_MISTAKE("round", round(o.a, 0, o.there)),
    CATENA_MISTAKE("heaviside", heaviside(o.a, o.b)),
    CATENA_MISTAKE("gcd", gcd(o.bytes, 1000)),
    CATENA_MISTAKE("lcm", lcm(o.bytes, 1000)),
    CATENA_MISTAKE("float_power", float_power(o.a, Array())),
    CATENA_MISTAKE("fix", fix(o.a, o.b)),
    CATENA_MISTAKE("cross", cross(o.a, ones({4, 3}))),
    CATENA_MISTAKE("nanargmin", nanargmin(o.empty)),
    CATENA_MISTAKE("histogram2d", histogram2d(o.v, o.v, 0)),
    CATENA_MISTAKE("histogram2d", histogram2d(o.v, o.v, o.a, o.v)),
    CATENA_MISTAKE("histogramdd", histogramdd(o.a, {o.v, o.v, o.a})),
    CATENA_MISTAKE("isclose", isclose(o.a, o.b)),
    CATENA_MISTAKE("allclose", allclose(o.a, o.there)),
    CATENA_MISTAKE("array_equal", array_equal(o.a, o.there)),
    CATENA_MISTAKE("array_equiv", array_equiv(o.a, o.there)),
    CATENA_MISTAKE("append", append(o.a, o.b, 0)),
    CATENA_MISTAKE("stack", stack({o.a, o.there})),
    CATENA_MISTAKE("block", block({{o.a, o.b}})),
    CATENA_MISTAKE("vstack", vstack({o.a, o.b})),
    CATENA_MISTAKE("hstack", hstack({o.a, o.b})),
    CATENA_MISTAKE("dstack", dstack({o.a, o.b})),
    CATENA_MISTAKE("column_stack", column_stack({o.a, o.there})),
    CATENA_MISTAKE("vsplit", vsplit(o.a, 5)),
    CATENA_MISTAKE("hsplit", hsplit(o.a, 2)),
    CATENA_MISTAKE("dsplit", dsplit(ones({2, 2, 3}), 2)),
    CATENA_MISTAKE("insert", insert(o.a, 0, o.b, 0)),
    CATENA_MISTAKE("resize", resize(o.a, {-1})),
    CATENA_MISTAKE("flipud", flipud(o.point)),
    CATENA_MISTAKE("identity", identity(-1)),
    CATENA_MISTAKE("logspace", logspace(0, 1, -1)),
    CATENA_MISTAKE("geomspace", geomspace(1, 2, -1)),
    CATENA_MISTAKE("rand", random::rand({2}, Dtype::kInt8)),
    CATENA_MISTAKE("randn", random::randn({2}, Dtype::kInt8)),
    CATENA_MISTAKE("random_sample", random::random_sample({2}, Dtype::kInt8)),
    CATENA_MISTAKE("standard_normal", random::standard_normal({2}, Dtype::kInt8)),
    CATENA_MISTAKE("randint", random::randint(0, 300, {2}, Dtype::kInt8)),
    CATENA_MISTAKE("random_integers", random::random_integers(0, 300, {2}, Dtype::kInt8)),
    CATENA_MISTAKE("standard_gamma", random::standard_gamma({2}, -1)),
    CATENA_MISTAKE("exponential", random::exponential({-2})),
    CATENA_MISTAKE("set_at", o.b.set_at({o.far}, 1)),
    CATENA_MISTAKE("set_at", o.fixed.set_at({1, 1}, 1)),
    CATENA_MISTAKE("add_at", o.b.add_at({o.far}, 1)),
    CATENA_MISTAKE("shuffle", random::shuffle(o.fixed)),
    // Methods
    CATENA_MISTAKE("Array::set", o.a.set(o.b)),
    CATENA_MISTAKE("host_view", host_view<const double, 1>(o.a)),
    CATENA_MISTAKE("host_view", host_view<const float, 2>(o.a)),
    CATENA_MISTAKE("host_view", host_view<double, 2>(o.fixed)),
    CATENA_MISTAKE("host_view", host_view<double, 2>(o.none_at_all)),
};
#undef CATENA_MISTAKE

TEST(ErrorNamesEverywhere, Routines) {
  const Operands operands;
  for (const Mistake& mistake : kMistakes)
    expect_named(mistake.name, mistake.text, [&] { mistake.call(operands); });
}

// What is not about arguments keeps its text.
TEST(ErrorNamesEverywhere, ErrorsOfMemoryAreLeftAlone) {
  const Array huge = broadcast_to(array(1.0), {int64_t{1} << 50});
  const std::string whole = error_of<OutOfMemoryError>([&] { huge.copy(); });
  const std::string text = error_of<OutOfMemoryError>([&] { stack({huge, huge}); });
  EXPECT_EQ(text.rfind("stack: ", 0), std::string::npos) << text;
  EXPECT_EQ(text.substr(0, text.find(':')), whole.substr(0, whole.find(':')));
}

}  // namespace
}  // namespace catena
