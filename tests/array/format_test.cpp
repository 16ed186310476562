// Print options. The texts themselves are compared with NumPy's in tests/array/numpy_text.
#include "catena/array/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "catena/array/creation.h"

namespace catena {
namespace {

TEST(FormatTest, OptionsHoldForACallOrAScope) {
  const Array a = array({1. / 3, 2.});
  EXPECT_EQ(array_str(a, {.precision = 3}), "[0.333 2.   ]");
  EXPECT_EQ(array_repr(a, {.precision = 2, .floatmode = FloatMode::kFixed}), "array([0.33, 2.00])");
  {
    const PrintOptionsScope scope({.precision = 1, .sign = '+'});
    EXPECT_EQ(a.to_string(), "[+0.3 +2. ]");
    EXPECT_EQ(get_printoptions().precision, 1);
  }
  EXPECT_EQ(a.repr(), "array([0.33333333, 2.        ])");
}

TEST(FormatTest, AScopeIsOfItsThread) {
  const Array a = array({1. / 3});
  const PrintOptionsScope scope({.precision = 2});
  std::thread([&] {
    EXPECT_EQ(a.to_string(), "[0.33333333]");
    const PrintOptionsScope other({.precision = 4});
    EXPECT_EQ(a.to_string(), "[0.3333]");
  }).join();
  EXPECT_EQ(a.to_string(), "[0.33]");
  {
    const PrintOptionsScope inner({.precision = 3});
    set_printoptions({.precision = 1});  // goes with the scope
    EXPECT_EQ(a.to_string(), "[0.3]");
  }
  EXPECT_EQ(a.to_string(), "[0.33]");
  std::thread([&] { EXPECT_EQ(get_printoptions().precision, 8); }).join();
}

TEST(FormatTest, LongArraysShowTheirEdges) {
  EXPECT_EQ(array_str(arange(20), {.threshold = 5, .edgeitems = 2}), "[ 0  1 ... 18 19]");
  EXPECT_EQ(array_str(arange(20), {.linewidth = 20}),
            "[ 0  1  2  3  4  5\n  6  7  8  9 10 11\n 12 13 14 15 16 17\n 18 19]");
}

TEST(FormatTest, SmallNumbersAndNames) {
  const Array a = array({1e-7, 1.});
  EXPECT_EQ(array_str(a), "[1.e-07 1.e+00]");
  EXPECT_EQ(array_str(a, {.suppress = true}), "[0.0000001 1.       ]");
  EXPECT_EQ(array_str(array({double{INFINITY}, 1.}), {.infstr = "Infinity"}),
            "[Infinity       1.]");
  EXPECT_EQ(array_repr(scalar_array(1.)), "array(1.)");
  EXPECT_EQ(array_repr(array({true, true})), "array([ True,  True])");
  // No peer prints it; it is laid out as the other floats.
  EXPECT_EQ(array_repr(array({0.1, 2.}).astype(dtype::bfloat16)),
            "array([0.1, 2. ], dtype=bfloat16)");
}

TEST(FormatTest, WrongOptionsAreRefused) {
  for (const PrintOptions& wrong :
       {PrintOptions{.precision = -1}, PrintOptions{.edgeitems = 0}, PrintOptions{.sign = 'x'}}) {
    EXPECT_THROW(set_printoptions(wrong), ValueError);
    EXPECT_THROW(array_str(arange(3), wrong), ValueError);
  }
  EXPECT_EQ(array_str(Array()), "<undefined array>");
}

}  // namespace
}  // namespace catena
