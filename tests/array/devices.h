// Base of array tests that run once on each device.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/testing.h"
#include "error_text.h"

namespace catena::test {

using V = std::vector<double>;
inline V values(const Array& a) { return a.to_vector<double>(); }

class OnDevice : public ::testing::TestWithParam<Device> {
 protected:
  Array on(const Array& a) const { return a.to(GetParam()); }
  Array numbers(const V& list) const { return on(array(list, cpu())); }
  Array ints(const std::vector<int64_t>& list) const { return on(array(list, cpu())); }
  Array counting(const Shape& shape, Dtype dtype = Dtype::kFloat64) const {
    return testing::counting_array(shape, dtype, GetParam());
  }
};

inline std::string device_name(const ::testing::TestParamInfo<Device>& info) {
  std::string name = info.param.name();
  name[name.find(':')] = '_';
  return name;
}

#define CATENA_ON_DEVICES(suite)                                                            \
  INSTANTIATE_TEST_SUITE_P(Devices, suite, ::testing::ValuesIn(catena::testing::devices()), \
                           catena::test::device_name)

}  // namespace catena::test
