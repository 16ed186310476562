// The network, data and comparisons of the tests that hold parallel training against one process.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/comm/factory.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
#include "catena/parallel/multi_node_optimizer.h"

namespace catena::testing {

namespace F = catena::functions;

constexpr int64_t kInputs = 6, kClasses = 3;

// Reproducible numbers in (-1, 1).
inline Array wave(const Shape& shape, double phase, Dtype dtype, double scale = 1) {
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = scale * std::sin(12.9898 * double(i) + 78.233 * phase);
  return array(values, shape, cpu(0)).astype(dtype);
}

inline F::Linear layer(int64_t in, int64_t out, Dtype dtype, double phase) {
  F::LinearOptions options;
  options.initialW = wave({out, in}, phase, dtype, 0.7);
  options.initial_bias = wave({out}, phase + 0.5, dtype, 0.2);
  DeviceScope scope(cpu(0));
  return F::Linear(in, out, options);
}

struct Net : FunctionSet {
  F::Linear l1, l2, l3, extra;
  explicit Net(Dtype dtype, double phase = 0)
      : l1(layer(kInputs, 9, dtype, phase + 1)),
        l2(layer(9, 9, dtype, phase + 2)),
        l3(layer(9, kClasses, dtype, phase + 3)),
        extra(layer(9, kClasses, dtype, phase + 4)) {}
  CATENA_FUNCTIONS(l1, l2, l3, extra)

  // l2 is used twice, extra only when asked for.
  Variable operator()(const Variable& x, bool with_extra = true) {
    const Variable h = F::tanh(l1(x));
    const Variable h2 = F::tanh(l2(F::tanh(l2(h))));
    const Variable y = l3(h2);
    return with_extra ? y + extra(h) : y;
  }
};

struct Batch {
  Array x, t;
  int64_t size() const { return t.size(); }
};

// The batch of a step, on cpu:0.
inline Batch batch_of(int64_t step, int64_t n, Dtype dtype) {
  std::vector<int32_t> labels(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    labels[size_t(i)] = static_cast<int32_t>((i * i + step) % kClasses);
  return {wave({n, kInputs}, double(step) + 0.25, dtype), array(labels, {n}, cpu(0))};
}

// Samples [begin, end) on a device.
inline Batch part(const Batch& batch, int64_t begin, int64_t end, Device device) {
  return {batch.x(Slice(begin, end)).to(device), batch.t(Slice(begin, end)).to(device)};
}

// Rank's samples of n: the first ranks get one more.
inline std::pair<int64_t, int64_t> shard(int64_t n, int rank, int size) {
  const int64_t base = n / size, rest = n % size;
  const int64_t begin = rank * base + std::min<int64_t>(rank, rest);
  return {begin, begin + base + (rank < rest ? 1 : 0)};
}

inline Variable loss_of(Net& net, const Batch& batch, bool with_extra = true) {
  return F::softmax_cross_entropy(net(Variable(batch.x, Volatile::off), with_extra), batch.t);
}

inline std::unique_ptr<Optimizer> make_rule(const std::string& name) {
  if (name == "SGD") return std::make_unique<optimizers::SGD>(0.1);
  if (name == "MomentumSGD") return std::make_unique<optimizers::MomentumSGD>(0.05, 0.9);
  return std::make_unique<optimizers::Adam>(0.01);
}

// All parameters of a model, each as doubles.
using Values = std::vector<std::vector<double>>;
inline Values values_of(const Parameterized& model) {
  Values result;
  for (const Parameter& p : model.parameters()) result.push_back(p.data().to_vector<double>());
  return result;
}

// Largest ||a - b|| / ||b|| over parameters.
inline double largest_difference(const Values& a, const Values& b) {
  double worst = 0;
  for (size_t k = 0; k < b.size(); ++k) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < b[k].size(); ++i) {
      difference += (a[k][i] - b[k][i]) * (a[k][i] - b[k][i]);
      norm += b[k][i] * b[k][i];
    }
    worst = std::max(worst, std::sqrt(difference / norm));
  }
  return worst;
}

inline void expect_equal_training(const Values& got, const Values& expected, Dtype dtype,
                                  const std::string& what = "") {
  if (dtype == dtype::float32) {
    EXPECT_LE(largest_difference(got, expected), 1e-5) << what;
    return;
  }
  for (size_t k = 0; k < expected.size(); ++k) {
    for (size_t i = 0; i < expected[k].size(); ++i) {
      ASSERT_NEAR(got[k][i], expected[k][i], 1e-9 * std::max(1e-3, std::abs(expected[k][i])))
          << what;
    }
  }
}

}  // namespace catena::testing
