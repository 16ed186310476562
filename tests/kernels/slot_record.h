// What the suite of the slots (records_test.cpp) knows of each: a call through the public routines,
// and its results by their definition, in double and in plain loops that use no kernel. The records
// are in records/*_records.cpp.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "catena/array/array.h"
#include "catena/testing.h"

namespace catena {

using Results = std::vector<Array>;

// Numbers of an array in C order.
struct Plain {
  Shape shape;
  std::vector<double> values;
  double operator()(int64_t i) const { return values[size_t(i)]; }
  double operator()(int64_t i, int64_t j) const { return (*this)(i * shape[1] + j); }
  int64_t size() const { return int64_t(values.size()); }
};
using Plains = std::vector<Plain>;

inline Plain plain_of(const Array& a) {
  return {a.shape(), a.to_cpu().astype(Dtype::kFloat64).to_vector<double>()};
}
// The numbers element(0), element(1), ... in this shape.
template <class Element>
Plain plain(const Shape& shape, Element element) {
  Plain result{shape, std::vector<double>(size_t(element_count(shape)))};
  for (int64_t i = 0; i < result.size(); ++i) result.values[size_t(i)] = element(i);
  return result;
}

struct SlotRecord {
  const char* slot;
  Results (*run)(Device);
  Plains (*reference)();
};
using SlotRecordList = std::vector<SlotRecord>;
// Defines records of a family; the build finds them (src/cmake/catena_lists.cmake):
//   CATENA_SLOT_RECORDS(pooling) { return {...}; }
#define CATENA_SLOT_RECORDS(name) SlotRecordList name##_slot_records()

// The operands of the calls: the same numbers on every device.
inline Array data(Device device, const Shape& shape, uint64_t seed = 1) {
  return testing::random_array(shape, -2, 2, Dtype::kFloat32, device, seed);
}
inline Plain plain_data(const Shape& shape, uint64_t seed = 1) {
  return plain_of(data(cpu(), shape, seed));
}
inline Array integers(Device device, const Shape& shape, int64_t high) {
  return testing::random_array(shape, 0, double(high) - 0.01, Dtype::kFloat64, cpu(), 2)
      .astype(Dtype::kInt32)
      .to(device);
}
inline Plain plain_integers(const Shape& shape, int64_t high) {
  return plain_of(integers(cpu(), shape, high));
}

}  // namespace catena
