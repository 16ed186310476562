// A small model and gradients for the tests of optimizers: no functions needed.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/function_set.h"
#include "catena/optimizers/optimizer.h"

namespace catena::testing {

// Two parameters, like a fully connected layer.
struct Pair : Parameterized {
  OwnedParameter W, b;
  Pair() = default;
  Pair(int64_t rows, int64_t columns, Dtype dtype = dtype::float32, double first = 0.5)
      : W(values({rows, columns}, dtype, first)), b(values({rows}, dtype, -first)) {}
  CATENA_PARAMETERS(W, b)

  static Array values(const Shape& shape, Dtype dtype, double first) {
    const int64_t n = element_count(shape);
    std::vector<double> v(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      v[size_t(i)] = first + 0.125 * double(i % 7) - 0.25 * double(i % 3);
    return array(v, shape).astype(dtype);
  }
};

struct Model : FunctionSet {
  Pair l1, l2;
  explicit Model(Dtype dtype = dtype::float32) : l1(5, 3, dtype), l2(2, 5, dtype, -1.0) {}
  CATENA_FUNCTIONS(l1, l2)
};

// The gradient of the element at position i of parameter k in step t.
inline double gradient_value(int64_t t, int64_t k, int64_t i) {
  return std::sin(0.7 * double(t) + 1.3 * double(k)) * 0.3 + 0.05 * double(i % 5) - 0.1;
}

inline void set_gradients(const Parameters& parameters, int64_t t) {
  for (size_t k = 0; k < parameters.size(); ++k) {
    const Parameter& p = parameters[k];
    std::vector<double> g(static_cast<size_t>(p.size()));
    for (size_t i = 0; i < g.size(); ++i) g[i] = gradient_value(t, int64_t(k), int64_t(i));
    p.set_grad(array(g, p.shape()).astype(p.dtype()).to(p.device()));
  }
}

// An update with the gradients of step t.
inline void step(optimizers::Optimizer& rule, const Parameterized& model, int64_t t) {
  rule.zero_grads();
  set_gradients(model.parameters(), t);
  rule.update();
}

using Values = std::vector<std::vector<double>>;

inline Values all_values(const Parameters& parameters) {
  Values result;
  for (const Parameter& p : parameters) result.push_back(p.data().to_vector<double>());
  return result;
}

inline void expect_near(const Values& got, const Values& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].size(), expected[k].size());
    for (size_t i = 0; i < got[k].size(); ++i)
      ASSERT_NEAR(got[k][i], expected[k][i], tolerance) << k << " " << i;
  }
}

// The state as a file would hold it: later updates leave it alone, and no name is there twice.
inline std::map<std::string, Array> copied_state(optimizers::Optimizer& optimizer) {
  std::map<std::string, Array> result;
  for (const auto& [name, array] : optimizer.state())
    EXPECT_TRUE(result.emplace(name, array.copy()).second) << name;
  return result;
}

inline std::vector<Device> test_devices() {
  std::vector<Device> devices{cpu(0), cpu(1)};
  if (device_count(DeviceType::kCuda) > 0) devices.push_back(cuda_device(0));
  return devices;
}

}  // namespace catena::testing
