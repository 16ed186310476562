#include "catena/core/shape.h"

#include <gtest/gtest.h>

#include <sstream>

#include "catena/core/error.h"

namespace catena {
namespace {

TEST(Shape, PrintsAsPythonTuple) {
  EXPECT_EQ(to_string(Shape{}), "()");
  EXPECT_EQ(to_string(Shape{3}), "(3,)");
  EXPECT_EQ(to_string(Shape{2, 3}), "(2, 3)");
  std::ostringstream stream;
  stream << Shape{2, 3} << ' ' << Shape{3};
  EXPECT_EQ(stream.str(), "(2, 3) (3,)");
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 0, 5}), 0);
  EXPECT_EQ(element_count({int64_t{1} << 40, int64_t{1} << 40, 0}), 0);
  EXPECT_THROW(element_count({int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
  EXPECT_THROW(element_count({-1}), ShapeError);
}

TEST(Shape, Broadcasts) {
  EXPECT_EQ(broadcast_shapes("t", {3, 1}, {4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast_shapes("t", {}, {2, 0}), (Shape{2, 0}));
  try {
    broadcast_shapes("add", {2, 3}, {4});
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_NE(std::string(e.what()).find("add: shapes (2, 3) and (4,)"), std::string::npos)
        << e.what();
  }
}

TEST(Axes, AreNormalised) {
  EXPECT_EQ(normalize_axes("t", {-1, 0}, 3), (Axes{0, 2}));
  EXPECT_EQ(normalize_axes("t", {}, 2), (Axes{0, 1}));
  EXPECT_THROW(normalize_axes("t", {3}, 3), IndexError);
  EXPECT_THROW(normalize_axes("t", {1, -2}, 3), ValueError);
}

}  // namespace
}  // namespace catena
