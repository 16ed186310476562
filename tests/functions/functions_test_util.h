// What the tests of the functions share: devices by name and checks on them. It includes what all
// of them use; a test includes the groups that it tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/autograd/grad_mode.h"
#include "catena/functions/math.h"
#include "catena/testing.h"
#include "error_text.h"

namespace catena {

namespace F = functions;
using testing::counting_array;
using testing::padded;
using testing::random_array;
using testing::reversed_layout;
using testing::transposed_layout;

// A suite that runs once on each test device.
class OnDevice : public ::testing::TestWithParam<Device> {
 protected:
  Device device() const { return GetParam(); }
  Array draw(const Shape& shape, double low = -1, double high = 1, uint64_t seed = 0,
             Dtype dtype = Dtype::kFloat64) const {
    return random_array(shape, low, high, dtype, device(), seed);
  }
};

inline std::string device_name(const ::testing::TestParamInfo<Device>& info) {
  std::string name = info.param.name();
  for (char& c : name) {
    if (c == ':') c = '_';
  }
  return name;
}
#define CATENA_ON_DEVICES(suite) \
  INSTANTIATE_TEST_SUITE_P(All, suite, ::testing::ValuesIn(testing::devices()), device_name)

inline CheckOptions tolerance(double eps, double atol, double rtol) {
  CheckOptions options;
  options.eps = eps;
  options.atol = atol;
  options.rtol = rtol;
  return options;
}

// First and second order, against numerical gradients, in float64.
inline void expect_gradients(const VariableFunction& f, const Arrays& inputs,
                             const std::string& what = "") {
  SCOPED_TRACE(what);
  EXPECT_NO_THROW(check_backward(f, inputs, tolerance(1e-5, 1e-6, 1e-5))) << what;
  EXPECT_NO_THROW(check_double_backward(f, inputs, tolerance(1e-5, 1e-6, 1e-5))) << what;
}
inline void expect_gradients(const std::function<Variable(const Variable&)>& f, const Array& x,
                             const std::string& what = "") {
  expect_gradients([&](const Variables& xs) { return Variables{f(xs[0])}; }, Arrays{x}, what);
}

}  // namespace catena
