// Set operations: numbers from NumPy.
#include <cmath>

#include "array/devices.h"
#include "catena/array/sets.h"

namespace catena {
namespace {

using namespace test;

class Sets : public OnDevice {};

TEST_P(Sets, MembersUnionsAndDifferences) {
  const Array a = ints({3, 1, 2, 3}), b = ints({3, 5, 1});
  EXPECT_EQ(values(isin(a.reshape({2, 2}), b)), (V{1, 1, 0, 1}));
  EXPECT_EQ(values(isin(a, b, true)), (V{0, 0, 1, 0}));
  EXPECT_EQ(values(intersect1d(a, b)), (V{1, 3}));
  EXPECT_EQ(values(union1d(a, b)), (V{1, 2, 3, 5}));
  EXPECT_EQ(values(setdiff1d(a, b)), (V{2}));
  EXPECT_EQ(values(setxor1d(a, b)), (V{2, 5}));
  const Array nothing = ints({});
  EXPECT_EQ(values(isin(a, nothing, true)), (V{1, 1, 1, 1}));
  EXPECT_EQ(intersect1d(a, nothing).size(), 0);
  EXPECT_EQ(values(setxor1d(nothing, b)), (V{1, 3, 5}));
  EXPECT_EQ(values(isin(numbers({NAN, 1, 2.5}), numbers({NAN, 1}))), (V{0, 1, 0}));
  EXPECT_EQ(union1d(a, numbers({0.5})).dtype(), Dtype::kFloat64);
}

CATENA_ON_DEVICES(Sets);

}  // namespace
}  // namespace catena
