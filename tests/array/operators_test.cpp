// The operators of arrays are the functions they stand for, in place as well; other names of
// functions; the table of element-wise operations as NumPy's ufuncs show it.
#include <gtest/gtest.h>

#include <algorithm>

#include "array/devices.h"
#include "catena/array/elementwise.h"
#include "catena/array/math.h"
#include "catena/core/dtype_info.h"
#include "catena/kernels/elementwise_ops.h"

namespace catena {
namespace {

using test::device_name;
using test::V;
using test::values;
using testing::difference;

class Operators : public test::OnDevice {
 protected:
  // Two arrays of the dtype, the second without zeros, of a layout with gaps.
  Array left(Dtype dtype) const {
    return testing::padded(numbers({-7, 7, 5, 12, 0, 3}).reshape({2, 3}).astype(dtype));
  }
  Array right(Dtype dtype) const {
    return testing::transposed_layout(numbers({2, 2, -3, 1, 4, 6}).reshape({2, 3}).astype(dtype));
  }
};
CATENA_ON_DEVICES(Operators);

constexpr Dtype kNumbers[] = {Dtype::kInt8,    Dtype::kInt32,   Dtype::kInt64,
                              Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64};
constexpr Dtype kIntegers[] = {Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kInt64};

TEST_P(Operators, CompareAndCompute) {
  for (const Dtype dtype : kNumbers) {
    const Array a = left(dtype), b = right(dtype);
    EXPECT_EQ(difference(a < b, less(a, b)), "");
    EXPECT_EQ(difference(a <= b, less_equal(a, b)), "");
    EXPECT_EQ(difference(a > b, greater(a, b)), "");
    EXPECT_EQ(difference(a >= b, greater_equal(a, b)), "");
    EXPECT_EQ(difference(a == b, equal(a, b)), "");
    EXPECT_EQ(difference(a != b, not_equal(a, b)), "");
    EXPECT_EQ(difference(a + b, add(a, b)), "");
    EXPECT_EQ(difference(a - b, subtract(a, b)), "");
    EXPECT_EQ(difference(a * b, multiply(a, b)), "");
    EXPECT_EQ(difference(a / b, divide(a, b)), "");
    EXPECT_EQ(difference(a % b, remainder(a, b)), "");
    EXPECT_EQ(difference(-a, negative(a)), "");
    EXPECT_TRUE((+a).same_body(a));
  }
  EXPECT_EQ(values(left(Dtype::kInt32) % right(Dtype::kInt32)), (V{1, 1, -1, 0, 0, 3}));
  EXPECT_EQ(values(floor_divide(left(Dtype::kInt32), right(Dtype::kInt32))),
            (V{-4, 3, -2, 12, 0, 0}));
  EXPECT_EQ(values(power(left(Dtype::kInt32), 2)), (V{49, 49, 25, 144, 0, 9}));
}

TEST_P(Operators, WorkOnBits) {
  for (const Dtype dtype : kIntegers) {
    const Array a = left(dtype), b = absolute(right(dtype));
    EXPECT_EQ(difference(a & b, bitwise_and(a, b)), "");
    EXPECT_EQ(difference(a | b, bitwise_or(a, b)), "");
    EXPECT_EQ(difference(a ^ b, bitwise_xor(a, b)), "");
    EXPECT_EQ(difference(a << b, left_shift(a, b)), "");
    EXPECT_EQ(difference(a >> b, right_shift(a, b)), "");
    EXPECT_EQ(difference(~a, invert(a)), "");
  }
  EXPECT_EQ(values(left(Dtype::kInt32) & 6), (V{0, 6, 4, 4, 0, 2}));
  EXPECT_EQ(values(left(Dtype::kInt32) >> 1), (V{-4, 3, 2, 6, 0, 1}));
}

// Runs `in_place` on an array of every layout: the result stands in its memory, in the given dtype.
template <class F>
void expect_in_place(const Array& start, const Array& expected, F in_place) {
  for (const Array& a : {start.copy(), testing::padded(start), testing::transposed_layout(start)}) {
    const Array kept = a;
    in_place(a);
    EXPECT_TRUE(kept.same_body(a));
    EXPECT_EQ(difference(a, expected), "");
  }
  const Array empty = zeros({0, 3}, {start.dtype(), start.device()});
  in_place(empty);
  EXPECT_EQ(empty.shape(), (Shape{0, 3}));
}

TEST_P(Operators, ArithmeticInPlace) {
  for (const Dtype dtype : kNumbers) {
    const Array a = left(dtype), row = right(dtype)[0];  // broadcasts over the rows
    expect_in_place(a, a + row, [&](const Array& x) { x += row; });
    expect_in_place(a, a - row, [&](const Array& x) { x -= row; });
    expect_in_place(a, a * row, [&](const Array& x) { x *= row; });
    expect_in_place(a, a % row, [&](const Array& x) { x %= row; });
    expect_in_place(a, floor_divide(a, row), [&](const Array& x) { floor_divide(x, row, x); });
    expect_in_place(a, power(a, 3), [&](const Array& x) { power(x, 3, x); });
    if (is_float(dtype)) {
      expect_in_place(a, a / row, [&](const Array& x) { x /= row; });
    } else {
      EXPECT_THROW(a.copy() /= row, DtypeError) << "a quotient is no integer";
    }
  }
  EXPECT_THROW(numbers({1, 2}) += numbers({1, 2}).reshape({2, 1}), ShapeError);
}

TEST_P(Operators, BitsInPlace) {
  for (const Dtype dtype : kIntegers) {
    const Array a = left(dtype), row = absolute(right(dtype))[0];
    expect_in_place(a, a & row, [&](const Array& x) { x &= row; });
    expect_in_place(a, a | row, [&](const Array& x) { x |= row; });
    expect_in_place(a, a ^ row, [&](const Array& x) { x ^= row; });
    expect_in_place(a, a << row, [&](const Array& x) { x <<= row; });
    expect_in_place(a, a >> row, [&](const Array& x) { x >>= row; });
    expect_in_place(a, a | 1, [&](const Array& x) { x |= 1; });
  }
  const Array mask = numbers({0, 1, 1}) > 0, other = numbers({1, 1, 0}) > 0;
  expect_in_place(mask, mask & other, [&](const Array& x) { x &= other; });
  EXPECT_THROW(numbers({1}) |= numbers({1}), DtypeError) << "floats have no bits";
}

TEST_P(Operators, FunctionsByTheirOtherNames) {
  const Array a = left(Dtype::kFloat64), b = right(Dtype::kFloat64);
  EXPECT_EQ(difference(true_divide(a, b), divide(a, b)), "");
  EXPECT_EQ(difference(mod(a, b), remainder(a, b)), "");
  EXPECT_EQ(difference(abs(a), absolute(a)), "");
  EXPECT_EQ(difference(radians(a), deg2rad(a)), "");
  EXPECT_EQ(difference(degrees(a), rad2deg(a)), "");
  EXPECT_EQ(true_divide(left(Dtype::kInt8), 2).dtype(), Dtype::kFloat64);
  const Array out = zeros({2, 3}, GetParam());
  EXPECT_TRUE(mod(a, b, out).same_body(out));
  EXPECT_EQ(radians(a, Dtype::kFloat32).dtype(), Dtype::kFloat32);
}

TEST_P(Operators, TheTableOfOperations) {
  const ElementwiseInfo& add_row = info(ops::add);
  EXPECT_STREQ(add_row.name, "add");
  EXPECT_EQ(add_row.nin(), 2);
  EXPECT_EQ(add_row.nout(), 1);
  EXPECT_EQ(add_row.nargs(), 3);
  EXPECT_EQ(info(ops::exp).nargs(), 2);
  EXPECT_EQ(elementwise_op("logaddexp"), ops::logaddexp);
  EXPECT_THROW(elementwise_op("modf"), ValueError) << "of two results";

  const std::vector<std::string> adds = elementwise_types(ops::add);
  EXPECT_EQ(std::count(adds.begin(), adds.end(), "ff->f"), 1);
  EXPECT_EQ(adds.size(), 13u) << "every dtype";
  const auto lesses = elementwise_types(ops::less);
  EXPECT_EQ(std::count(lesses.begin(), lesses.end(), "dd->?"), 1);
  EXPECT_EQ(elementwise_types(ops::sqrt),
            (std::vector<std::string>{"e->e", "E->E", "f->f", "d->d"}));
  EXPECT_FALSE(computes_in(ops::invert, Dtype::kFloat32));
  EXPECT_TRUE(computes_in(ops::invert, Dtype::kBool));

  // Each listed type is one the operation really computes in and gives.
  for (const ElementwiseOp op : elementwise_ops()) {
    EXPECT_EQ(elementwise_op(info(op).name), op);
    if (info(op).inputs != 1) continue;
    for (const std::string& type : elementwise_types(op)) {
      const Array x = ones({2}, {parse_dtype(type.substr(0, 1)), GetParam()});
      EXPECT_EQ(dtype_char(elementwise(op, {x}).dtype()), type.back()) << info(op).name << type;
    }
  }
  const Array a = left(Dtype::kFloat32);
  EXPECT_EQ(difference(elementwise(ops::add, {a, 1}), a + 1), "");
}

}  // namespace
}  // namespace catena
