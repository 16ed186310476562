// A small network, data and score for the tests of updaters and the trainer.
#pragma once

#include <memory>
#include <vector>

#include "catena/array/reduction.h"
#include "catena/functions/evaluation/accuracy.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/training/updater.h"
#include "parallel/network.h"

namespace catena::training {

constexpr int64_t kSamples = 23;

inline datasets::DatasetPtr make_data(double phase = 0) {
  const Array x = testing::wave({kSamples, testing::kInputs}, phase, Dtype::kFloat32);
  return std::make_shared<datasets::TupleDataset>(
      Arrays{x, argmax(x(ellipsis, Slice(0, testing::kClasses)), 1)});
}

// Loss and accuracy, times what a test puts into `factor`.
inline Score score_of(testing::Net& model, double* factor = nullptr) {
  return [&model, factor](const datasets::Batch& batch) -> Variables {
    const Variable y = model(Variable::constant(batch.x()));
    const Variable loss = testing::F::softmax_cross_entropy(y, batch.t());
    return {factor ? loss * *factor : loss, testing::F::accuracy(y, batch.t())};
  };
}

inline std::vector<double> numbers_of(const Parameterized& model) {
  std::vector<double> all;
  for (const Parameter& p : model.parameters()) {
    const auto values = p.data().to_cpu().to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

inline void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << "at " << i;
}

}  // namespace catena::training
