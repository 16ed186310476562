// Errors name the function that was called, not one that it is made of.
#include <functional>

#include "catena/array/along_axis.h"
#include "catena/array/calculus.h"
#include "catena/array/creation.h"
#include "catena/array/float_parts.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/numeric.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/array/sorting.h"
#include "catena/array/statistics.h"
#include "error_text.h"

namespace catena {
namespace {

struct Operands {
  Array a = ones({2, 3}), b = ones({4, 5}), v = ones({3}), empty_list = ones({0}), point = ones({});
  Array there = ones({2, 3}, {Dtype::kFloat64, cpu(1)}), list_there = ones({3}, {cpu(1)});
  Array mask = ones({2, 3}, Dtype::kBool), positions = array({0, 1, 2});
  Array rows = positions.reshape({1, 3}), bytes = ones({3}, Dtype::kInt8);
  Array fixed = v.broadcast_to({2, 3});
};

struct Mistake {
  const char* name;
  std::function<void(const Operands&)> call;
};

// One line each: the function and a call of it that must fail.
#define CATENA_MISTAKE(name, ...)                        \
  {                                                      \
    name, [](const Operands& o) { (void)(__VA_ARGS__); } \
  }

const Mistake kMistakes[] = {
    CATENA_MISTAKE("take_along_axis", take_along_axis(o.a, o.rows, 0)),
    CATENA_MISTAKE("take_along_axis", take_along_axis(o.a, array({9}), none)),
    CATENA_MISTAKE("put_along_axis", put_along_axis(o.a, o.rows, 1, 0)),
    CATENA_MISTAKE("put_along_axis", put_along_axis(o.a, o.rows * 0, o.b, 0)),
    CATENA_MISTAKE("put_along_axis", put_along_axis(o.a, o.rows * 0, o.list_there, 0)),
    CATENA_MISTAKE("put_along_axis", put_along_axis(o.fixed, o.rows * 0, 1, 0)),
    CATENA_MISTAKE("putmask", putmask(o.fixed, o.mask, o.v)),
    CATENA_MISTAKE("putmask", putmask(o.bytes, ones({3}, Dtype::kBool), 1000)),
    CATENA_MISTAKE("place", place(o.fixed, o.mask, o.v)),
    CATENA_MISTAKE("fill_diagonal", fill_diagonal(ones({2, 2}, Dtype::kInt8), 1000)),
    CATENA_MISTAKE("indices", indices({-1, 2})),
    CATENA_MISTAKE("select", select({o.mask}, {o.b})),
    CATENA_MISTAKE("select", select({o.mask}, {o.there})),
    CATENA_MISTAKE("select", select({o.mask}, {Array()})),
    CATENA_MISTAKE("piecewise", piecewise(o.bytes, {o.bytes > 0}, {1000})),
    CATENA_MISTAKE("piecewise", piecewise(o.a, {o.a}, {1})),
    CATENA_MISTAKE("round", round(o.a, 1, o.b)),
    CATENA_MISTAKE("round", round(o.a, 0, o.there)),
    CATENA_MISTAKE("heaviside", heaviside(o.a, o.b)),
    CATENA_MISTAKE("gcd", gcd(o.bytes, 1000)),
    CATENA_MISTAKE("lcm", lcm(o.bytes, 1000)),
    CATENA_MISTAKE("float_power", float_power(o.a, Array())),
    CATENA_MISTAKE("fix", fix(o.a, o.b)),
    CATENA_MISTAKE("gradient", gradient(Array(), 1, 0)),
    CATENA_MISTAKE("trapezoid", trapezoid(Array())),
    CATENA_MISTAKE("cross", cross(o.a, o.v, 5)),
    CATENA_MISTAKE("cross", cross(o.a, ones({4, 3}))),
    CATENA_MISTAKE("cross", cross(o.mask, o.mask)),
    CATENA_MISTAKE("nanvar", nanvar(o.a, 5)),
    CATENA_MISTAKE("nanstd", nanstd(o.a, {0, 0})),
    CATENA_MISTAKE("nanargmax", nanargmax(o.a, 5)),
    CATENA_MISTAKE("nanargmin", nanargmin(o.empty_list)),
    CATENA_MISTAKE("nancumsum", nancumsum(o.a, 5)),
    CATENA_MISTAKE("nancumprod", nancumprod(o.a, 5)),
    CATENA_MISTAKE("histogram2d", histogram2d(o.v, o.v, 0)),
    CATENA_MISTAKE("histogram2d", histogram2d(o.v, o.v, o.a, o.v)),
    CATENA_MISTAKE("histogramdd", histogramdd(o.a, {o.v, o.v, o.a})),
    CATENA_MISTAKE("isclose", isclose(o.a, o.b)),
    CATENA_MISTAKE("allclose", allclose(o.a, o.there)),
    CATENA_MISTAKE("array_equal", array_equal(o.a, o.there)),
    CATENA_MISTAKE("array_equiv", array_equiv(o.a, o.there)),
    CATENA_MISTAKE("nansum", nansum(o.a, 5)),
    CATENA_MISTAKE("nanprod", nanprod(o.a, 5)),
    CATENA_MISTAKE("nanmean", nanmean(o.a, 5)),
    CATENA_MISTAKE("nanmax", nanmax(o.empty_list)),
    CATENA_MISTAKE("nanmin", nanmin(o.a, 5)),
    CATENA_MISTAKE("ptp", ptp(o.a, {.out = o.b})),
    CATENA_MISTAKE("average", average(o.a, o.a, 5)),
    CATENA_MISTAKE("average", average(o.a, o.there)),
    CATENA_MISTAKE("count_nonzero", count_nonzero(o.a, 5)),
    CATENA_MISTAKE("append", append(o.a, o.b, 0)),
    CATENA_MISTAKE("stack", stack({o.a, o.a}, 5)),
    CATENA_MISTAKE("stack", stack({o.a, o.there})),
    CATENA_MISTAKE("block", block({{o.a, o.b}})),
    CATENA_MISTAKE("vstack", vstack({o.a, o.b})),
    CATENA_MISTAKE("hstack", hstack({o.a, o.b})),
    CATENA_MISTAKE("dstack", dstack({o.a, o.b})),
    CATENA_MISTAKE("column_stack", column_stack({o.a, o.there})),
    CATENA_MISTAKE("array_split", array_split(o.a, 0)),
    CATENA_MISTAKE("vsplit", vsplit(o.a, 5)),
    CATENA_MISTAKE("hsplit", hsplit(o.a, 2)),
    CATENA_MISTAKE("dsplit", dsplit(ones({2, 2, 3}), 2)),
    CATENA_MISTAKE("insert", insert(o.a, 0, o.b, 0)),
    CATENA_MISTAKE("resize", resize(o.a, {-1})),
    CATENA_MISTAKE("flipud", flipud(o.point)),
    CATENA_MISTAKE("compress", compress(ones({9}, Dtype::kBool), o.a, 0)),
    CATENA_MISTAKE("extract", extract(ones({6}, {Dtype::kBool, cpu(1)}), o.a)),
    CATENA_MISTAKE("choose", choose(o.positions, {o.v, o.b, o.b})),
    CATENA_MISTAKE("put", put(o.bytes, o.positions, 1000)),
    CATENA_MISTAKE("outer", outer(o.v, o.list_there)),
    CATENA_MISTAKE("kron", kron(o.a, o.there)),
    CATENA_MISTAKE("linalg::norm", linalg::norm(o.a, {}, Axes{0, 1, 2})),
    CATENA_MISTAKE("identity", identity(-1)),
    CATENA_MISTAKE("logspace", logspace(0, 1, -1)),
    CATENA_MISTAKE("geomspace", geomspace(1, 2, -1)),
    CATENA_MISTAKE("lexsort", lexsort({o.a}, 5)),
    CATENA_MISTAKE("divmod", divmod(o.a, o.b)),
    CATENA_MISTAKE("rand", random::rand({2}, Dtype::kInt8)),
    CATENA_MISTAKE("randn", random::randn({2}, Dtype::kInt8)),
    CATENA_MISTAKE("random_sample", random::random_sample({2}, Dtype::kInt8)),
    CATENA_MISTAKE("standard_normal", random::standard_normal({2}, Dtype::kInt8)),
    CATENA_MISTAKE("randint", random::randint(0, 300, {2}, Dtype::kInt8)),
    CATENA_MISTAKE("random_integers", random::random_integers(0, 300, {2}, Dtype::kInt8)),
    CATENA_MISTAKE("standard_gamma", random::standard_gamma({2}, -1)),
    CATENA_MISTAKE("multinomial", random::multinomial({2}, 3, array({0.5, 0.6}))),
    CATENA_MISTAKE("exponential", random::exponential({-2})),
};
#undef CATENA_MISTAKE

TEST(ErrorNames, AreThoseOfTheFunctionCalled) {
  const Operands operands;
  for (const Mistake& mistake : kMistakes) {
    const std::string text = error_of<Error>([&] { mistake.call(operands); });
    EXPECT_EQ(text.rfind(std::string(mistake.name) + ": ", 0), 0u)
        << mistake.name << " says: " << text;
  }
}

// What is not about arguments keeps its text.
TEST(ErrorNames, ErrorsOfMemoryAreLeftAlone) {
  const Array huge = broadcast_to(array(1.0), {int64_t{1} << 50});
  const std::string whole = error_of<OutOfMemoryError>([&] { huge.copy(); });
  const std::string text = error_of<OutOfMemoryError>([&] { stack({huge, huge}); });
  EXPECT_EQ(text.rfind("stack: ", 0), std::string::npos) << text;
  EXPECT_EQ(text.substr(0, text.find(':')), whole.substr(0, whole.find(':')));
}

TEST(ErrorNames, TypesStay) {
  const Array a = ones({2, 3});
  EXPECT_THROW(cross(a, ones({3}), 5), IndexError);
  EXPECT_THROW(stack({a, ones({2, 3}, cpu(1))}), DeviceError);
  EXPECT_THROW(cross(a > 0, a > 0), DtypeError);
  EXPECT_THROW(select({a > 0}, {ones({4, 5})}), ShapeError);
  EXPECT_THROW(identity(-1), ShapeError);
  EXPECT_THROW(logspace(0, 1, -1), ValueError);
}

}  // namespace
}  // namespace catena
