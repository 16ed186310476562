// Packed bits, whose values are cases of tests/oracle, and counts of bits: numbers from NumPy.
#include <cstdint>

#include "array/devices.h"
#include "catena/array/bits.h"

namespace catena {
namespace {

using namespace test;

class Bits : public OnDevice {};

TEST_P(Bits, PackedBits) {
  const Array bits = ints({1, 0, 1, 0, 0, 1, 1, 0, 1}).astype(Dtype::kUInt8);
  EXPECT_EQ(unpackbits(packbits(bits), {}, 20).size(), 20);
  EXPECT_EQ(packbits(ints({})).size(), 0);
  EXPECT_THROW(packbits(numbers({1})), DtypeError);
  EXPECT_THROW(unpackbits(ints({1})), DtypeError);
  EXPECT_EQ(values(bitwise_count(ints({0, 1, -1, 255, INT64_MIN, INT64_MAX}))),
            (V{0, 1, 1, 8, 1, 63}));
  EXPECT_EQ(values(bitwise_count(ints({-128, 127, -1}).astype(Dtype::kInt8))), (V{1, 7, 1}));
  EXPECT_EQ(values(bitwise_count(on(array({true, false})))), (V{1, 0}));
}

CATENA_ON_DEVICES(Bits);

}  // namespace
}  // namespace catena
