#include "catena/autograd/type_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <thread>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/function.h"

namespace catena {
namespace {

namespace tc = type_check;
using tc::expect;
using tc::named;

// The text of the InvalidType that f throws; "" if it throws nothing.
std::string failure_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvalidType& e) {
    return e.what();
  }
  return "";
}
template <class Comparison>
std::string failure(const Comparison& c) {
  return failure_of([&] { expect(c); });
}

TypeInfoTuple types_of(const std::vector<Shape>& shapes, Dtype dtype = Dtype::kFloat32) {
  std::vector<Array> arrays;
  for (const Shape& shape : shapes) arrays.push_back(zeros(shape, dtype));
  return TypeInfoTuple(arrays);
}

TEST(TypeCheck, TextsOfComparisons) {
  const auto a = named(3, "a"), b = named(4, "b");
  EXPECT_EQ(failure(a == b), "Expect: a == b\nActual: 3 != 4");
  EXPECT_EQ(failure(a != named(3, "c")), "Expect: a != c\nActual: 3 == 3");
  EXPECT_EQ(failure(b < a), "Expect: b < a\nActual: 4 >= 3");
  EXPECT_EQ(failure(b <= a), "Expect: b <= a\nActual: 4 > 3");
  EXPECT_EQ(failure(a > b), "Expect: a > b\nActual: 3 <= 4");
  EXPECT_EQ(failure(a >= 5), "Expect: a >= 5\nActual: 3 < 5");
  EXPECT_EQ(failure(5 <= a), "Expect: 5 <= a\nActual: 5 > 3");
  EXPECT_EQ(failure_of([&] { expect(a == 3, a != 4, a<4, a <= 3, a> 2, a >= 3, 3 == a); }), "");
  EXPECT_FALSE((a == b).eval());
  EXPECT_TRUE((a < b).eval());
  EXPECT_EQ((a == b).str(), "a == b");
}

TEST(TypeCheck, OperatorsHavePythonsPrioritiesAndValues) {
  const auto a = named(7, "a"), b = named(2, "b"), c = named(3, "c"), n = named(-7, "n");
  const auto is = [](const auto& e, const char* text, auto value) {
    EXPECT_EQ(e.str(), text);
    EXPECT_EQ(e.eval(), value) << text;
  };
  is(a + b * c, "a + b * c", 13);
  is((a + b) * c, "(a + b) * c", 27);
  is(a - (b - c), "a - (b - c)", 8);
  is(a - b - c, "a - b - c", 2);
  is(a / b % c, "a // b % c", 0);
  is(a / (b % c), "a // (b % c)", 3);
  is(n / b, "n // b", -4);
  is(n % b, "n % b", 1);
  is(true_divide(a, b), "a / b", 3.5);
  is(a / 2.0, "a / 2.0", 3.5);
  is(floor_divide(a, 2.0), "a // 2.0", 3.0);
  is(-a + b, "-a + b", -5);
  is(-(a + b), "-(a + b)", -9);
  is(~a, "~a", -8);
  is(+a * 2, "+a * 2", 14);
  is(pow(c, b), "c ** b", 9);                  // a power, not a remainder
  is(pow(pow(c, b), 2), "(c ** b) ** 2", 81);  // right associative
  is(pow(b, pow(b, c)), "b ** b ** c", 256);
  is(-pow(c, b), "-c ** b", -9);
  is(pow(-c, b), "(-c) ** b", 9);
  is(pow(-3, b), "(-3) ** b", 9);
  is(pow(0.5, b), "0.5 ** b", 0.25);
  is((a << 1) | ((b & 3) ^ c), "a << 1 | b & 3 ^ c", 15);
  is((a | b) & c, "(a | b) & c", 3);
  is(a << (b + 1), "a << b + 1", 56);
  is((a << b) + 1, "(a << b) + 1", 29);
  is(n >> 1, "n >> 1", -4);
  is((a == 7) & (b == 2), "(a == 7) & (b == 2)", true);
  is(4 * a - 1, "4 * a - 1", 27);
}

TEST(TypeCheck, OperandsThatAnOperatorDoesNotTake) {
  const auto a = named(7, "a"), zero = named(0, "zero"), b = named(64, "b");
  EXPECT_EQ(failure(a / zero == 1), "Expect: zero != 0\nActual: 0 == 0");
  EXPECT_EQ(failure(a % (zero + 0) == 1), "Expect: zero + 0 != 0\nActual: 0 == 0");
  EXPECT_EQ(failure(pow(a, zero - 1) == 1), "Expect: zero - 1 >= 0\nActual: -1 < 0");
  EXPECT_EQ(failure((a << b) == 1), "Expect: b < 64\nActual: 64 >= 64");
  EXPECT_EQ(failure((a >> -1) == 1), "Expect: -1 >= 0\nActual: -1 < 0");
  const auto least = named(INT64_MIN, "least");
  EXPECT_EQ((least / -1).eval(), INT64_MIN);  // wraps, as all integers do
  EXPECT_EQ((least % -1).eval(), 0);
  EXPECT_EQ((-least).eval(), INT64_MIN);
  EXPECT_EQ((least - 1).eval(), INT64_MAX);
}

TEST(TypeCheck, TypesOfArrays) {
  const TypeInfoTuple in({zeros({2, 3}, Dtype::kFloat32), zeros({4}, Dtype::kInt64)});
  EXPECT_EQ(failure(in.size() == 3), "Expect: in_types.size == 3\nActual: 2 != 3");
  EXPECT_EQ(failure(in[0].ndim() == in[1].ndim()),
            "Expect: in_types[0].ndim == in_types[1].ndim\nActual: 2 != 1");
  EXPECT_EQ(failure(in[0].shape(1) == in[1].shape(0)),
            "Expect: in_types[0].shape[1] == in_types[1].shape[0]\nActual: 3 != 4");
  EXPECT_EQ(failure(in[0].dtype() == in[1].dtype()),
            "Expect: in_types[0].dtype == in_types[1].dtype\nActual: float32 != int64");
  EXPECT_EQ(failure(in[1].dtype().kind() == 'f'),
            "Expect: in_types[1].dtype.kind == f\nActual: i != f");
  EXPECT_EQ(failure(in[1].dtype().kind() == "f"),
            "Expect: in_types[1].dtype.kind == f\nActual: i != f");
  EXPECT_EQ(failure(in[0].size() > 6), "Expect: in_types[0].size > 6\nActual: 6 <= 6");
  EXPECT_EQ(failure(in[0] == in[1]),
            "Expect: in_types[0] == in_types[1]\nActual: float32 (2, 3) != int64 (4,)");
  EXPECT_EQ(failure_of([&] { expect(in[0].dtype().kind() == 'f', in[0].shape(-1) == 3); }), "");
  EXPECT_EQ(in[0].eval(), TypeInfo(Shape{2, 3}, Dtype::kFloat32));
  const auto [x, y] = in.unpack<2>();
  EXPECT_EQ(x.str() + y.str(), "in_types[0]in_types[1]");
  EXPECT_EQ(failure_of([&] { in.unpack<3>(); }), "Expect: in_types.size == 3\nActual: 2 != 3");
}

// Chainer's tutorial compares whole shapes, x_type.shape == y_type.shape.
TEST(TypeCheck, ShapesAsAWhole) {
  const TypeInfoTuple in = types_of({{2, 3}, {2, 4}});
  const auto x = in[0], y = in[1];
  EXPECT_EQ(failure(x.shape() == y.shape()),
            "Expect: in_types[0].shape == in_types[1].shape\nActual: (2, 3) != (2, 4)");
  EXPECT_EQ(failure(x.shape() == Shape{5}),
            "Expect: in_types[0].shape == (5,)\nActual: (2, 3) != (5,)");
  EXPECT_EQ(failure(x.shape() != std::vector<int64_t>{2, 3}),
            "Expect: in_types[0].shape != (2, 3)\nActual: (2, 3) == (2, 3)");
  EXPECT_EQ(failure(x.shape()[Slice(none, 1)] == y.shape()[Slice(none, 1)]), "");
}

TEST(TypeCheck, Elements) {
  const TypeInfoTuple in = types_of({{2, 3, 5, 7}});
  const auto shape = in[0].shape();
  const auto is = [](const auto& e, const char* text, auto value) {
    EXPECT_EQ(e.str(), text);
    EXPECT_EQ(e.eval(), value) << text;
  };
  is(shape[1], "in_types[0].shape[1]", 3);
  is(shape[-1], "in_types[0].shape[-1]", 7);
  is(shape[named(1, "axis") + 1], "in_types[0].shape[axis + 1]", 5);
  is(shape[Slice(1, none)], "in_types[0].shape[1:]", Shape{3, 5, 7});
  is(shape[Slice(none, -1)], "in_types[0].shape[:-1]", Shape{2, 3, 5});
  is(shape[Slice(none, none, -2)], "in_types[0].shape[::-2]", Shape{7, 3});
  is(shape[Slice(-100, 100, INT64_MAX)], "in_types[0].shape[-100:100:9223372036854775807]",
     Shape{2});
  is(shape[Slice(3, 1)], "in_types[0].shape[3:1]", Shape{});
  is(shape[Slice(none, 1)] + Shape{9}, "in_types[0].shape[:1] + (9,)", Shape{2, 9});
  is(prod(shape[Slice(1, none)]), "prod(in_types[0].shape[1:])", 105);
  is(prod(shape[Slice(0, 0)]), "prod(in_types[0].shape[0:0])", 1);
  EXPECT_EQ(failure(shape[4] == 1), "Expect: in_types[0].ndim >= 5\nActual: 4 < 5");
  EXPECT_EQ(failure(in[0].shape(-5) == 1), "Expect: in_types[0].ndim >= 5\nActual: 4 < 5");
  EXPECT_EQ(failure(shape[Slice(2, none)][2] == 1),
            "Expect: len(in_types[0].shape[2:]) >= 3\nActual: 2 < 3");
  EXPECT_THROW((void)shape[Slice(0, 1, 0)].eval(), ValueError);
}

TEST(TypeCheck, NamedShapesArraysAndMembers) {
  const auto wanted = tc::Variable({2, 3}, "wanted");
  const TypeInfoTuple in = types_of({{2, 4}});
  EXPECT_EQ(failure(in[0].shape() == wanted),
            "Expect: in_types[0].shape == wanted\nActual: (2, 4) != (2, 3)");
  EXPECT_EQ(wanted[1].str(), "wanted[1]");
  EXPECT_EQ(failure(named({2, 4}, "other") == wanted),
            "Expect: other == wanted\nActual: (2, 4) != (2, 3)");
  const auto W = tc::Variable(arange(12).reshape({3, 4}), "W");
  EXPECT_EQ(failure(in[0].shape(0) == W.shape(0)),
            "Expect: in_types[0].shape[0] == W.shape[0]\nActual: 2 != 3");
  EXPECT_EQ(failure(W.dtype() == in[0].dtype()),
            "Expect: W.dtype == in_types[0].dtype\nActual: int64 != float32");
  EXPECT_EQ((W[{0, ellipsis, newaxis, Slice(1, none)}].str()), "W[0, ..., newaxis, 1:]");
  EXPECT_EQ((W[{0, ellipsis, newaxis, Slice(1, none)}].eval().shape()), (Shape{1, 3}));
  EXPECT_EQ(failure(W[ellipsis].ndim() + W[1].size() == 7),
            "Expect: W[...].ndim + W[1].size == 7\nActual: 6 != 7");
  struct Options {
    int pad;
    Shape stride() const { return {1, pad}; }
  };
  const auto options = tc::Variable(Options{5}, "options");
  EXPECT_EQ(failure(options.attr("pad", &Options::pad) < in[0].shape(1)),
            "Expect: options.pad < in_types[0].shape[1]\nActual: 5 >= 4");
  EXPECT_EQ(failure(options.attr("stride", &Options::stride)[0] == 2),
            "Expect: options.stride[0] == 2\nActual: 1 != 2");
}

TEST(TypeCheck, ExpressionsKeepWhatTheyReferTo) {
  std::optional<tc::Expr<int64_t>> later;
  std::string text;
  {
    const TypeInfoTuple in = types_of({{2, 3}});
    const auto factor = named(4, std::string("a factor with a long name"));
    later = in[0].shape(1) * factor;
  }
  std::thread([&] { text = later->str() + " = " + std::to_string(later->eval()); }).join();
  EXPECT_EQ(text, "in_types[0].shape[1] * a factor with a long name = 12");
  EXPECT_EQ((*later + 1).str(), "in_types[0].shape[1] * a factor with a long name + 1");
  EXPECT_EQ(((*later + 1) * 2).str(), "(in_types[0].shape[1] * a factor with a long name + 1) * 2");
  EXPECT_EQ((*later == 12).eval(), true);
  std::ostringstream os;
  os << (named(1, "a") + 2);
  EXPECT_EQ(os.str(), "a + 2");
}

template <class E>
concept HasTruth = requires(const E& e) {
  e ? 1 : 0;
};
TEST(TypeCheck, ExpressionsHaveNoTruthValue) {
  const auto a = named(3, "a");
  static_assert(!HasTruth<decltype(a == 3)> && !HasTruth<decltype(a)>);
  static_assert(!std::is_convertible_v<decltype(a == 3), bool>);
  EXPECT_TRUE((a == 3).eval());
}

TEST(TypeCheck, TypesWithoutAnArray) {
  const TypeInfoTuple gys = tc::get_types({Array(), zeros({2})}, "grads", true);
  EXPECT_EQ(failure(gys[0].dtype() == gys[1].dtype()),
            "Expect: grads[0].dtype == grads[1].dtype\nActual: None != float64");
  EXPECT_EQ(gys[0].eval(), TypeInfo());
  EXPECT_EQ(failure(gys[0].ndim() == 1), "Expect: grads[0].ndim == 1\nActual: 0 != 1");
  EXPECT_EQ(failure(gys[0].dtype().kind() == 'f'),
            "Expect: the kind of a dtype\nActual: None has no kind");
  EXPECT_THROW((void)tc::get_types({Array()}, "grads", false), ValueError);
  EXPECT_EQ(gys.name(), "grads");
}

TEST(TypeCheck, InvalidTypeTellsItsHalves) {
  const InvalidType two("a", "b"), three("a", "b", "text"), one("text");
  EXPECT_STREQ(two.what(), "Expect: a\nActual: b");
  EXPECT_STREQ(three.what(), "text");
  EXPECT_EQ(three.expect() + three.actual(), "ab");
  EXPECT_EQ(one.expect() + one.actual(), "");
}

struct OneRow : Function {
  void check_type_forward(const TypeInfoTuple& in) const override { expect(in[0].shape(0) == 1); }
  Arrays forward(const Arrays& x) override { return {x[0]}; }
};
TEST(TypeCheck, FunctionsKeepTheHalves) {
  try {
    call(OneRow(), Variable(zeros({2})));
    ADD_FAILURE();
  } catch (const InvalidType& e) {
    EXPECT_EQ(e.expect(), "in_types[0].shape[0] == 1");
    EXPECT_EQ(e.actual(), "2 != 1");
    EXPECT_STREQ(e.what(),
                 "Invalid operation is performed in: OneRow (Forward)\n\n"
                 "Expect: in_types[0].shape[0] == 1\nActual: 2 != 1");
  }
}

TEST(TypeCheck, FunctionsAreCalledWhenAnExpressionIs) {
  const auto larger = tc::Variable([](int64_t a, int64_t b) { return std::max(a, b); }, "larger");
  const TypeInfoTuple in = types_of({{3, 4}});
  EXPECT_EQ(failure(larger(in[0].shape(0) + 1, 9) == 4),
            "Expect: larger(in_types[0].shape[0] + 1, 9) == 4\nActual: 9 != 4");
}

}  // namespace
}  // namespace catena
