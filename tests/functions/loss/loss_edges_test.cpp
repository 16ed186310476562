// Losses at their edges: zero distances and probabilities, labels out of range, options that agree
// with each other, sums of 16-bit floats, autocast.
#include <limits>

#include "catena/autograd/autocast.h"
#include "catena/functions/array/one_hot.h"
#include "catena/functions/loss.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using F::Reduction;

class LossEdges : public OnDevice {
 protected:
  Array on(const Array& a) const { return a.to(device()); }
  double number(const Variable& v) const { return v.data().item<double>(); }
};

TEST_P(LossEdges, DistributionsOfOneClassAreLabels) {
  const Array t = on(array({2, 0, 1, 1})), w = on(array({0.5, 2.0, 1.25}));
  for (const double smoothing : {0.0, 0.1}) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kNone}) {
      const F::SoftmaxCrossEntropyOptions options{
          .reduction = reduction, .class_weight = w, .label_smoothing = smoothing};
      const Variable x(draw({4, 3}, -2, 2)), y(x.data().copy());
      const Variable hard = F::softmax_cross_entropy(x, t, options);
      const Variable soft = F::softmax_cross_entropy(y, F::one_hot(t, 3, Dtype::kFloat64), options);
      assert_allclose(hard.data(), soft.data(), 1e-12, 1e-12);
      F::sum(hard).backward();
      F::sum(soft).backward();
      assert_allclose(x.grad(), y.grad(), 1e-12, 1e-12);
    }
  }
}

TEST_P(LossEdges, IgnoredLabelsTakeNoPartWhateverTheirScores) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Variable x(on(array({{nan, nan}, {0.0, 0.0}})));
  const Array t = on(array({-1, 1}));
  for (const double smoothing : {0.0, 0.5}) {
    const Variable losses = F::softmax_cross_entropy(
        x, t, {.reduction = Reduction::kNone, .label_smoothing = smoothing});
    assert_allclose(losses.data(), array({0.0, std::log(2.)}), 1e-12, 1e-12);
    x.set_grad(Array());
    F::sum(losses).backward();
    const double slope = smoothing == 0 ? 0.5 : 0.25;
    assert_allclose(x.grad(), array({{0.0, 0.0}, {slope, -slope}}), 1e-12, 1e-12);
  }
  const Variable log_p(on(array({{-std::numeric_limits<double>::infinity(), 0.0}, {-1.0, -2.0}})));
  EXPECT_EQ(number(F::negative_log_likelihood(log_p, t)), 2);
}

TEST_P(LossEdges, LabelsWithoutWeightCountNothing) {
  const Variable x(draw({2, 3}));
  const Array t = on(array({0, 0})), w = on(array({0.0, 1.0, 1.0}));
  const Variable loss = F::softmax_cross_entropy(x, t, {.class_weight = w});
  EXPECT_EQ(number(loss), 0);
  loss.backward();
  EXPECT_EQ(testing::difference(x.grad(), zeros_like(x.data())), "");
  EXPECT_EQ(number(F::negative_log_likelihood(x, t, {.class_weight = w})), 0);
}

TEST_P(LossEdges, LabelsOutOfRange) {
  const Array x = draw({3, 3}), t = on(array({0, 3, 1}));
  const auto losses = [&] {
    return F::softmax_cross_entropy(x, t, {.reduction = Reduction::kNone});
  };
  const auto likelihoods = [&] {
    return F::negative_log_likelihood(x, t, {.reduction = Reduction::kNone});
  };
  if (device().is_cpu()) {
    EXPECT_EQ(error_of<ValueError>(losses),
              "SoftmaxCrossEntropy: label 3 at position 1 is outside [0, 3) and not the ignored "
              "label -1");
    EXPECT_EQ(error_of<ValueError>(likelihoods),
              "NegativeLogLikelihood: label 3 at position 1 is outside [0, 3) and not the ignored "
              "label -1");
    return;
  }
  for (const Variable& each : {losses(), likelihoods()}) {
    const std::vector<double> values = each.data().to_vector<double>();
    EXPECT_FALSE(std::isnan(values[0]) || std::isnan(values[2]));
    EXPECT_TRUE(std::isnan(values[1]));
  }
}

TEST_P(LossEdges, LaterWritesToLabelsChangeNoGradientOfALikelihood) {
  const Array t = on(array({0, 1}));
  const Variable x(draw({2, 2}));
  const Variable loss = F::negative_log_likelihood(x, t, {.reduction = Reduction::kSum});
  t.fill(0);
  loss.backward();
  EXPECT_EQ(testing::difference(x.grad(), on(array({{-1.0, 0.0}, {0.0, -1.0}}))), "");
}

TEST_P(LossEdges, ProbabilitiesOfZeroCountNothing) {
  const double infinite = std::numeric_limits<double>::infinity();
  const Variable log_q(on(array({{0.0, -infinite}}))), p(on(array({{1.0, 0.0}})));
  const Variable loss = F::kl_divergence(log_q, p);
  EXPECT_EQ(number(loss), 0);
  loss.backward();
  EXPECT_EQ(testing::difference(log_q.grad(), on(array({{-1.0, 0.0}}))), "");
}

TEST_P(LossEdges, GradientsOfNoDistanceAreZero) {
  for (const Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32, Dtype::kFloat16}) {
    const Variable a(ones({2, 3}, {dtype, device()})), b(ones({2, 3}, {dtype, device()}));
    F::contrastive(a, b, on(array({0, 1}))).backward();
    EXPECT_EQ(testing::difference(a.grad(), zeros_like(a.data())), "") << dtype;
    const Variable zero(zeros({2, 3}, {dtype, device()}));
    const Variable cosines = F::cosine_similarity(zero, b);
    EXPECT_EQ(testing::difference(cosines.data(), zeros_like(cosines.data())), "") << dtype;
    if (dtype == Dtype::kFloat16) continue;  // it does not hold 1 / eps
    F::sum(cosines).backward();
    EXPECT_TRUE(all(isfinite(zero.grad())).item<bool>()) << dtype;
  }
}

TEST_P(LossEdges, CosinesOfSmallVectorsAreThoseOfLargeOnes) {
  const Array a = draw({4, 3}, 0.2, 1, 1), b = draw({4, 3}, -1, 1, 2), t = on(array({1, -1, 1, 0}));
  for (const double scale : {1e-3, 1e3})
    EXPECT_NEAR(number(F::cosine_embedding_loss(a * scale, b * scale, t)),
                number(F::cosine_embedding_loss(a, b, t)), 1e-9);
}

// Where a sigmoid is 0, the slope of its power is not.
TEST_P(LossEdges, FocalSlopesAreFiniteForEveryGamma) {
  for (const double gamma : {0.5, 1.0, 2.0, 3.0}) {
    const Variable x(on(array<float>({-110, 110, -110, 110, 0})));
    const Array t = on(array<float>({1, 1, 0, 0, 1}));
    F::focal_loss(x, t, 0.25, gamma, Reduction::kSum).backward();
    const Array g = x.grad().to_cpu();
    EXPECT_NEAR(g.at({0}).item<float>(), -0.25, 1e-5) << gamma;
    EXPECT_NEAR(g.at({1}).item<float>(), 0, 1e-5) << gamma;
    EXPECT_NEAR(g.at({2}).item<float>(), 0, 1e-5) << gamma;
    EXPECT_NEAR(g.at({3}).item<float>(), 0.75, 1e-5) << gamma;
  }
}

TEST_P(LossEdges, SixteenBitsAddUpWide) {
  const Array x = full({300, 300}, 1.0, {Dtype::kFloat16, device()});
  const Array t = full({300, 300}, 0.0, {Dtype::kFloat16, device()});
  EXPECT_EQ(number(F::mean_absolute_error(x, t)), 1);
  EXPECT_EQ(number(F::huber_loss(x, t, 2)), 0.5);
  EXPECT_NEAR(number(F::focal_loss(x, t, 0, 0)), std::log1p(std::exp(1.)), 1e-3);
  // The squares of a row leave float16.
  const Array far = full({1, 3}, 200, {Dtype::kFloat16, device()});
  EXPECT_EQ(number(F::cosine_similarity(far, far)(0)), 1);
}

TEST_P(LossEdges, AutocastComputesThemInFloat32) {
  const AutocastScope scope(dtype::bfloat16);
  const Variable x(draw({4, 3}).astype(Dtype::kBFloat16));
  const Array t = draw({4, 3}, 0.2, 0.8).astype(Dtype::kBFloat16);
  const Array labels = on(array({0, 1, 2, 0}));
  for (const Variable& loss :
       {F::mean_absolute_error(x, t), F::huber_loss(x, t, 1), F::kl_divergence(x, t),
        F::focal_loss(x, t), F::sigmoid_cross_entropy(x, t), F::softmax_cross_entropy(x, t),
        F::negative_log_likelihood(x, labels), F::hinge(x, labels), F::triplet(x, t, t),
        F::contrastive(x, t, labels), F::cosine_embedding_loss(x, t, labels)}) {
    EXPECT_EQ(loss.dtype(), Dtype::kFloat32);
    loss.backward();
    EXPECT_EQ(x.grad().dtype(), Dtype::kBFloat16);
  }
}

// What an optimizer over ranks does with gradients of shards, by their batch weights.
TEST_P(LossEdges, ShardsOfABatchAverageToTheWhole) {
  const Array x = draw({5, 3}, -2, 2), t = on(array({0, 2, -1, 1, 1}));
  const Array w = on(array({0.5, 2.0, 1.25}));
  const auto gradient = [&](int64_t begin, int64_t end, Reduction reduction) {
    const Variable part(x(Slice(begin, end)).copy());
    Variable loss = F::softmax_cross_entropy(
        part, t(Slice(begin, end)),
        {.normalize = false, .reduction = reduction, .class_weight = w, .label_smoothing = 0.1});
    if (reduction == Reduction::kSum) loss = loss / double(end - begin);
    loss.backward();
    return part.grad();
  };
  const Array whole = gradient(0, 5, Reduction::kMean);
  for (const Reduction reduction : {Reduction::kMean, Reduction::kSum}) {
    const Array first = gradient(0, 2, reduction) * (2. / 5);
    const Array second = gradient(2, 5, reduction) * (3. / 5);
    assert_allclose(first, whole(Slice(0, 2)), 1e-12, 1e-12);
    assert_allclose(second, whole(Slice(2, 5)), 1e-12, 1e-12);
  }
}

TEST_P(LossEdges, OptionsOnAnotherDeviceAreRefused) {
  const Array x = draw({2, 3}), t = on(array({0, 1}));
  const Array w = ones({3}, {Dtype::kFloat64, device() == cpu(0) ? cpu(1) : cpu(0)});
  EXPECT_THROW(F::softmax_cross_entropy(x, t, {.class_weight = w}), DeviceError);
  EXPECT_THROW(F::negative_log_likelihood(x, t, {.class_weight = w}), DeviceError);
  EXPECT_THROW(F::sigmoid_cross_entropy(x, on(zeros({2, 3}, dtype::int32)), {.pos_weight = w}),
               DeviceError);
}

CATENA_ON_DEVICES(LossEdges);

}  // namespace
}  // namespace catena
