// Cases, operands and layers of the tests of batch normalization.
#pragma once

#include "catena/functions/normalization.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "functions/functions_test_util.h"

namespace catena::testing::normalization {

struct Case {
  const char* name;
  Shape x, channels;
  Axes axes;   // over which statistics are made
  Shape kept;  // that of channels beside x
};

inline std::vector<Case> cases() {
  return {
      {"vectors", {7, 3}, {3}, {0}, {1, 3}},
      {"sequences", {3, 4, 5}, {4}, {0, 2}, {1, 4, 1}},
      {"images", {4, 3, 2, 5}, {3}, {0, 2, 3}, {1, 3, 1, 1}},
      {"volumes", {2, 2, 3, 2, 4}, {2}, {0, 2, 3, 4}, {1, 2, 1, 1, 1}},
      {"one_channel", {3, 1, 4}, {1}, {0, 2}, {1, 1, 1}},
      {"one_sample", {1, 3, 4, 2}, {3}, {0, 2, 3}, {1, 3, 1, 1}},
      {"two_channel_axes", {4, 3, 2, 5}, {3, 2}, {0, 3}, {1, 3, 2, 1}},
  };
}

// The definition, in the dtype of x.
inline Array normalized(const Case& c, const Array& x, const Array& mean, const Array& var,
                        double eps) {
  return (x - mean.reshape(c.kept)) / sqrt(var.reshape(c.kept) + eps);
}
inline Array batch_mean(const Case& c, const Array& x) {
  return mean(x, c.axes).reshape(c.channels);
}
inline Array batch_var(const Case& c, const Array& x) { return var(x, c.axes).reshape(c.channels); }
inline double values_a_channel(const Case& c) {
  return double(element_count(c.x)) / double(element_count(c.channels));
}

class NormalizationOnDevice : public OnDevice {
 protected:
  Array batch(const Case& c, uint64_t seed = 1, Dtype dtype = Dtype::kFloat64) const {
    return draw(c.x, -2, 3, seed, dtype);
  }
  Array gamma(const Case& c, Dtype dtype = Dtype::kFloat64) const {
    return draw(c.channels, 0.5, 2, 2, dtype);
  }
  Array beta(const Case& c, Dtype dtype = Dtype::kFloat64) const {
    return draw(c.channels, -1, 1, 3, dtype);
  }
  Array variance(const Case& c) const { return draw(c.channels, 0.5, 2, 5); }
  // A layer of float64 on the test's device.
  F::BatchNormalization layer(const Case& c, F::BatchNormalizationOptions options = {}) const {
    options.dtype = Dtype::kFloat64;
    DeviceScope scope(device());
    return F::BatchNormalization(c.channels, options);
  }
};

}  // namespace catena::testing::normalization
