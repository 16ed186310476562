// Arrays that do not fit together: each message says what was called, what came in, and what would
// have been right.
#include "catena/core/error.h"

#include <gtest/gtest.h>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"

namespace catena {
namespace {

Array floats(const Shape& shape, Device device = cpu(0)) {
  return zeros(shape, {Dtype::kFloat32, device});
}
Array ints(const Shape& shape) { return zeros(shape, {Dtype::kInt32, cpu(0)}); }

// The cure for arrays, and for the variables that a function was given.
std::string differ(const std::string& who, const std::string& a, const std::string& b) {
  return who + ": arrays on different devices: " + a + " and " + b + "; copy one with to(\"" + a +
         "\") first, a Variable with functions::copy(x, \"" + a + "\")";
}

TEST(MistakesAreNamed, OfShapes) {
  EXPECT_EQ(error_of<ShapeError>([] {
              floats({2, 3}) + floats({2, 4});
            }),
            "add: shapes (2, 3) and (2, 4) cannot be broadcast together (axis 1 of the result: "
            "3 against 4)");
  EXPECT_EQ(error_of<ShapeError>([] {
              Array a = floats({3});
              a += floats({2, 3});
            }),
            "add: the output has shape (3,), expected (2, 3)");
  EXPECT_EQ(error_of<ShapeError>([] {
              matmul(floats({2, 3}), floats({4, 5}));
            }),
            "matmul: (2, 3) and (4, 5) do not fit: the last axis of the first has extent 3, "
            "the matching axis of the second 4");
  EXPECT_EQ(error_of<ShapeError>([] {
              floats({2, 3}).reshape({4, -1});
            }),
            "reshape: 6 elements do not fit (4, -1), expected a multiple of 4");
  EXPECT_EQ(error_of<ShapeError>([] {
              floats({2, 3}).reshape({4, 2});
            }),
            "reshape: 6 elements do not fit (4, 2), expected 8");
  EXPECT_EQ(error_of<ShapeError>([] {
              concatenate({floats({2, 3}), floats({2, 4})}, 0);
            }),
            "concatenate: (2, 4) and (2, 3) differ outside axis 0; expected equal extents there");
  EXPECT_EQ(error_of<ShapeError>([] { floats({3}).assign(floats({2})); }),
            "assign: shapes (2,) and (3,) cannot be broadcast together (axis 0 of the result: "
            "2 against 3)");
  EXPECT_EQ(error_of<ShapeError>([] {
              floats({3}).broadcast_to({2, 2});
            }),
            "broadcast_to: (3,) does not broadcast to (2, 2): axis 1 has extent 3, expected 2 "
            "or 1");
  EXPECT_EQ(error_of<ShapeError>([] { floats({2}).item<float>(); }),
            "item: expected an array of one element, got shape (2,)");
  EXPECT_EQ(error_of<ShapeError>([] { split(floats({5}), 2); }),
            "split: axis 0 of (5,) does not divide into 2 equal parts; array_split allows "
            "unequal ones");
}

TEST(MistakesAreNamed, OfDtypes) {
  EXPECT_EQ(error_of<DtypeError>([] {
              Array a = ints({3});
              a += floats({3});
            }),
            "add: a result of dtype float64 cannot be stored into an array of "
            "dtype int32; convert it with astype");
  EXPECT_EQ(error_of<DtypeError>([] { take(floats({3}), floats({1}), 0); }),
            "take: expected integer positions, got float32");
  EXPECT_EQ(error_of<DtypeError>([] { random::uniform({3}, 0, 1, Dtype::kInt32); }),
            "uniform: expected a floating dtype, got int32");
}

TEST(MistakesAreNamed, OfDevices) {
  EXPECT_EQ(error_of<DeviceError>([] { floats({3}, cpu(0)) + floats({3}, cpu(1)); }),
            differ("add", "cpu:0", "cpu:1"));
  EXPECT_EQ(error_of<DeviceError>([] {
              matmul(floats({2, 2}, cpu(1)), floats({2, 2}, cpu(0)));
            }),
            differ("matmul", "cpu:1", "cpu:0"));
  EXPECT_EQ(error_of<DeviceError>([] {
              concatenate({floats({2}, cpu(0)), floats({2}, cpu(2))}, 0);
            }),
            differ("concatenate", "cpu:0", "cpu:2"));
  EXPECT_EQ(error_of<DeviceError>([] { take(floats({3}, cpu(1)), ints({1}), 0); }),
            "take: arrays on different devices: cpu:1 and cpu:0; copy one with to(\"cpu:1\") "
            "first");
}

}  // namespace
}  // namespace catena
