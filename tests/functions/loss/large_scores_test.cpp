// Softmax and cross entropy of large scores, whose differences alone matter, and accuracy of scores
// that are NaN.
#include <limits>

#include "catena/functions/activation/softmax.h"
#include "catena/functions/evaluation/accuracy.h"
#include "catena/functions/loss/sigmoid_cross_entropy.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class LargeScores : public OnDevice {};

struct Scores {
  Dtype dtype;
  double base;        // of all scores
  double difference;  // of each class to the next
  double rounding;
};
const Scores kScores[] = {{Dtype::kFloat32, 1e4, 8, 2e-6},     {Dtype::kFloat32, 1e7, 2, 2e-6},
                          {Dtype::kFloat32, -1e30, 0, 2e-6},   {Dtype::kFloat64, 1e12, 8, 1e-14},
                          {Dtype::kFloat16, 4096, 4, 0x1p-10}, {Dtype::kBFloat16, 1024, 8, 0x1p-7}};

// Few classes, whole warps, and classes for a block; with an inner axis, too.
const Shape kShapes[] = {{5, 3}, {4, 100}, {2, 1500}, {3, 7, 4}, {2, 40, 3}};

double score(const Scores& s, int64_t c) { return s.base - s.difference * double(c % 3); }

TEST_P(LargeScores, HaveTheLossOfTheirDifferences) {
  for (const Scores& s : kScores) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(message(s.dtype, " ", s.base, " ", shape));
      const int64_t classes = shape[1], inner = shape.ndim() == 3 ? shape[2] : 1;
      std::vector<double> values(size_t(element_count(shape)));
      for (size_t i = 0; i < values.size(); ++i) values[i] = score(s, int64_t(i) / inner % classes);
      Shape labels = shape;
      labels.erase(labels.begin() + 1);
      const Variable x(array(values, shape).astype(s.dtype).to(device()));
      const Variable loss = F::softmax_cross_entropy(x, zeros(labels, {Dtype::kInt32, device()}));
      long double sum = 0;
      for (int64_t c = 0; c < classes; ++c)
        sum += std::exp((long double)(score(s, c) - score(s, 0)));
      const double expected = double(std::log(sum));
      EXPECT_NEAR(loss.data().item<double>(), expected, s.rounding * (expected + 0.1));
      loss.backward();
      const double samples = double(element_count(labels));
      const auto gradients = x.grad().astype(Dtype::kFloat64).to_vector<double>();
      for (size_t i = 0; i < gradients.size(); ++i) {
        const int64_t c = int64_t(i) / inner % classes;
        const long double p = std::exp((long double)(score(s, c) - score(s, 0))) / sum;
        const double g = double(p - (c == 0 ? 1 : 0)) / samples;
        ASSERT_NEAR(gradients[i], g, s.rounding * (4 * std::abs(g) + 0.1 / samples)) << i;
      }
    }
  }
}

TEST_P(LargeScores, HaveASoftmax) {
  const Array x = array({{1e4, 0.0}, {-1e4, -1e4}}).to(device());
  EXPECT_EQ(F::softmax(x).data().to_vector<double>(), (std::vector<double>{1, 0, 0.5, 0.5}));
}

TEST_P(LargeScores, OfNaNAreWrong) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Array scores = array({{nan, 1.0, 2.0}, {0.0, nan, 2.0}, {3.0, 1.0, 2.0}, {1.0, 2.0, nan}});
  const Array labels = array({0, 1, 0, 2});
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBFloat16}) {
    const Array x = scores.astype(dtype).to(device());
    EXPECT_EQ(F::accuracy(x, labels.to(device())).data().item<double>(), 0.25) << dtype;
  }
  const Array wide = full({3, 2000}, nan, {Dtype::kFloat32, device()});
  EXPECT_EQ(F::accuracy(wide, zeros({3}, {Dtype::kInt32, device()})).data().item<double>(), 0);
}

// Labels of small integer types: what to do.
TEST_P(LargeScores, LabelsOfOtherTypesAreToBeConverted) {
  const Array x = draw({4, 3});
  for (const Dtype dtype : {Dtype::kUInt8, Dtype::kInt16, Dtype::kBool, Dtype::kFloat32}) {
    const std::string text = error_of<InvalidType>([&] {
      F::softmax_cross_entropy(x, zeros({4}, {dtype, device()}));
    });
    expect_contains(text, {"in int32 or int64", ".astype(dtype::int32)"});
  }
  const std::string text = error_of<InvalidType>([&] {
    F::sigmoid_cross_entropy(x, zeros({4, 3}, {Dtype::kFloat32, device()}));
  });
  expect_contains(text, {".astype(dtype::int32)"});
}

CATENA_ON_DEVICES(LargeScores);

}  // namespace
}  // namespace catena
