// What the suite of the slots (records_test.cpp) knows of each: a call through the public routines.
// The records are in records/*_records.cpp.
#pragma once

#include <vector>

#include "catena/array/array.h"
#include "catena/testing.h"

namespace catena {

using Results = std::vector<Array>;

struct SlotRecord {
  const char* slot;
  Results (*run)(Device);
};
using SlotRecordList = std::vector<SlotRecord>;
// Defines records of a family; the build finds them (src/cmake/catena_lists.cmake):
//   CATENA_SLOT_RECORDS(pooling) { return {...}; }
#define CATENA_SLOT_RECORDS(name) SlotRecordList name##_slot_records()

// The operands of the calls: the same numbers on every device.
inline Array data(Device device, const Shape& shape, uint64_t seed = 1) {
  return testing::random_array(shape, -2, 2, Dtype::kFloat32, device, seed);
}
inline Array integers(Device device, const Shape& shape, int64_t high) {
  return testing::random_array(shape, 0, double(high) - 0.01, Dtype::kFloat64, cpu(), 2)
      .astype(Dtype::kInt32)
      .to(device);
}
}  // namespace catena
