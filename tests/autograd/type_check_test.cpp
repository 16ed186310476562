#include "catena/autograd/type_check.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"

namespace catena {
namespace {

using namespace type_check;

std::string failure(const Condition& c) {
  try {
    expect(c);
  } catch (const InvalidType& e) {
    return e.what();
  }
  return "";
}

TEST(TypeCheck, TextsOfComparisons) {
  const Expression a = named(3, "a"), b = named(4, "b");
  EXPECT_EQ(failure(a == b), "Expect: a == b\nActual: 3 != 4");
  EXPECT_EQ(failure(a != named(3, "c")), "Expect: a != c\nActual: 3 == 3");
  EXPECT_EQ(failure(b < a), "Expect: b < a\nActual: 4 >= 3");
  EXPECT_EQ(failure(b <= a), "Expect: b <= a\nActual: 4 > 3");
  EXPECT_EQ(failure(a > b), "Expect: a > b\nActual: 3 <= 4");
  EXPECT_EQ(failure(a >= 5), "Expect: a >= 5\nActual: 3 < 5");
  for (const Condition& c : {a == 3, a != 4, a<4, a <= 3, a> 2, a >= 3}) EXPECT_EQ(failure(c), "");
}

TEST(TypeCheck, ParenthesesOnlyWhereNeeded) {
  const Expression a = named(7, "a"), b = named(2, "b"), c = named(3, "c");
  EXPECT_EQ((a + b * c).text, "a + b * c");
  EXPECT_EQ(((a + b) * c).text, "(a + b) * c");
  EXPECT_EQ((a - (b - c)).text, "a - (b - c)");
  EXPECT_EQ((a - b - c).text, "a - b - c");
  EXPECT_EQ((a / b % c).text, "a // b % c");
  EXPECT_EQ((a - (b - c)).number, 8);
  EXPECT_EQ((a / b).number, 3);
  EXPECT_EQ((named(-7, "d") / b).number, -4);  // rounds down
  EXPECT_EQ((named(-7, "d") % b).number, 1);
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
  EXPECT_EQ(failure(in[0].dtype() == Dtype::kFloat64),
            "Expect: in_types[0].dtype == float64\nActual: float32 != float64");
  EXPECT_EQ(failure(in[1].dtype().kind() == 'f'),
            "Expect: in_types[1].dtype.kind == f\nActual: i != f");
  EXPECT_EQ(failure(in[0].size() > 6), "Expect: in_types[0].size > 6\nActual: 6 <= 6");
  EXPECT_EQ(failure(in[0].dtype().kind() == 'f'), "");
}

TEST(TypeCheck, WhatIsNotThereIsATypeErrorToo) {
  const TypeInfoTuple in({zeros({2})}, "out_types");
  EXPECT_THROW(in[0].shape(1), InvalidType);
  EXPECT_THROW(in[1], InvalidType);
  try {
    in[0].shape(1);
  } catch (const InvalidType& e) {
    EXPECT_STREQ(e.what(), "Expect: out_types[0].ndim >= 2\nActual: 1 < 2");
  }
}

}  // namespace
}  // namespace catena
