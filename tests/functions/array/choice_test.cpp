// Positions out of range, zeros, infinities and NaN in array functions, reductions and measures;
// everything else is in the function oracle.
#include <limits>

#include "catena/core/graph.h"
#include "catena/functions/array/one_hot.h"
#include "catena/functions/array/pad.h"
#include "catena/functions/array/separate.h"
#include "catena/functions/array/take.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Choice : public OnDevice {
 protected:
  Array on(const Array& a) const { return a.to(device()); }
};

TEST_P(Choice, PositionsOutOfRange) {
  const Variable x(draw({2, 3}));
  for (const int64_t position : {int64_t{3}, int64_t{-4}}) {
    const Array one = on(array<int64_t>({0, position}, cpu())), two = one.reshape({1, 2});
    if (device().is_cpu()) {
      EXPECT_EQ(error_of<IndexError>([&] { F::take(x, one, 1); }),
                message("Take: position ", position, " is out of bounds for axis 1 of extent 3"));
      EXPECT_EQ(error_of<IndexError>([&] { F::take_along_axis(x, two, 1); }),
                message("TakeAlongAxis: position ", position,
                        " is out of bounds for axis 1 of extent 3"));
      continue;
    }
    for (const Variable& y : {F::take(x, one, 1), F::take_along_axis(x, two, 1)}) {
      const std::vector<double> values = y.data().to_vector<double>();
      EXPECT_FALSE(std::isnan(values[0]));
      EXPECT_TRUE(std::isnan(values[1]));
      x.set_grad(Array());
      F::sum(y).backward();
      EXPECT_EQ(testing::difference(x.grad(), on(array({{1.0, 0.0, 0.0}, {1.0, 0.0, 0.0}}))), "");
    }
  }
}

// As int64 it would be -1, the last element.
TEST_P(Choice, PositionsBeyondInt64AreOutOfRange) {
  const Variable x(draw({2, 3}));
  const Array one = on(array(std::vector<uint64_t>{~uint64_t{0}})), two = one.reshape({1, 1});
  if (device().is_cpu()) {
    EXPECT_THROW(F::take(x, one, 1), IndexError);
    EXPECT_THROW(F::take_along_axis(x, two, 1), IndexError);
    return;
  }
  EXPECT_TRUE(all(isnan(F::take(x, one, 1).data())).item<bool>());
  EXPECT_TRUE(all(isnan(F::take_along_axis(x, two, 1).data())).item<bool>());
}

TEST_P(Choice, PositionsOfOtherLinesAreRefused) {
  const Variable x(draw({3, 4}));
  EXPECT_EQ(error_of<ShapeError>([&] {
              F::take_along_axis(x, zeros({2, 2}, {dtype::int32, device()}), 1);
            }),
            "TakeAlongAxis: positions of shape (2, 2) for a variable of shape (3, 4) along axis 1; "
            "expected 3, or 1, as their extent of axis 0");
}

// Their sums with the extent would leave 64 bits.
TEST_P(Choice, PaddingBeyondAnyMemoryIsRefused) {
  const Variable x(draw({2, 3}));
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const PadMode mode : {PadMode::kConstant, PadMode::kEdge, PadMode::kReflect}) {
    expect_contains(error_of<ShapeError>([&] { F::pad(x, most, mode); }), {"more than 2^60"});
  }
  EXPECT_THROW(pad(x.data(), most, PadMode::kWrap), ShapeError);
}

TEST_P(Choice, ExtremesOfNothingNameTheirFunction) {
  const Variable x(draw({0, 3}));
  EXPECT_EQ(error_of<ValueError>([&] { F::max(x, 0); }),
            "Max: no elements along the reduced axes of shape (0, 3)");
  EXPECT_EQ(error_of<ValueError>([&] { F::min(x); }),
            "Min: no elements along the reduced axes of shape (0, 3)");
}

TEST_P(Choice, EqualPositionsAddUp) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16}) {
    const Variable x(ones({1, 2}, {dtype, device()}));
    const Array many = zeros({1, 3000}, {Dtype::kInt32, device()});
    F::sum(F::take(x, many.reshape({3000}), 1)).backward();
    const double expected = dtype == Dtype::kBFloat16 ? 3008 : 3000;  // in steps of 16
    EXPECT_EQ(x.grad()(0, 0).item<double>(), expected) << dtype;
    EXPECT_EQ(x.grad()(0, 1).item<double>(), 0) << dtype;
  }
  const Variable x(draw({1, 2}));
  F::sum(F::take_along_axis(x, zeros({1, 5}, {Dtype::kInt64, device()}), 1)).backward();
  EXPECT_EQ(testing::difference(x.grad(), on(array({{5.0, 0.0}}))), "");
}

TEST_P(Choice, SeparateOfNothingIsEmpty) {
  EXPECT_TRUE(F::separate(Variable(draw({0, 2}))).empty());
}

TEST_P(Choice, OneHotOfUnsignedAndUnknownLabels) {
  const Array t = on(array({0, 7, 2}).astype(Dtype::kUInt8));
  EXPECT_EQ(testing::difference(F::one_hot(t, 3).data(),
                                on(array({{1.f, 0.f, 0.f}, {0.f, 0.f, 0.f}, {0.f, 0.f, 1.f}}))),
            "");
}

TEST_P(Choice, LogsumexpOfExtremes) {
  const Variable x(on(array({{1000.0, 1000.0},
                             {-kInfinity, 0.0},
                             {-kInfinity, -kInfinity},
                             {kInfinity, 0.0},
                             {-1000.0, -2000.0}})));
  const Variable y = F::logsumexp(x, 1);
  assert_allclose(y.data(), array({1000 + std::log(2.), 0.0, -kInfinity, kInfinity, -1000.0}),
                  1e-12, 1e-12);
  F::sum(F::logsumexp(x, 1)(Slice(0, 3))).backward();
  assert_allclose(x.grad()(Slice(0, 3)), array({{0.5, 0.5}, {0.0, 1.0}, {0.0, 0.0}}), 1e-12, 1e-12);
  EXPECT_TRUE(std::isnan(F::logsumexp(on(array({kNan, 0.0}))).data().item<double>()));
}

TEST_P(Choice, SixteenBitsAreComputedWide) {
  const Array x = full({4096}, 200, {Dtype::kFloat16, device()});
  EXPECT_EQ(F::norm(x).data().item<double>(), 200 * 64);
  EXPECT_EQ(F::var(x).data().item<double>(), 0);
  EXPECT_NEAR(F::logsumexp(x).data().item<double>(), 200 + std::log(4096.), 0.07);
}

TEST_P(Choice, GradientsOfZeroNormsAndDeviationsAreZero) {
  for (const double p : {1.0, 2.0, 1.5, kInfinity}) {
    const Variable x(on(zeros({3}, dtype::float64)));
    F::norm(x, none, false, p).backward();
    EXPECT_EQ(testing::difference(x.grad(), zeros_like(x.data())), "") << p;
  }
  const Variable x(on(full({3}, 2.0, dtype::float64)));
  F::std(x).backward();
  EXPECT_EQ(testing::difference(x.grad(), zeros_like(x.data())), "");
  EXPECT_TRUE(std::isnan(F::var(draw({1}), none, false, 1).data().item<double>()));
}

// Division by the elements would lose these.
TEST_P(Choice, ProductsOfZerosHaveGradientsOfBothOrders) {
  const auto f = [](const Variable& x) { return F::prod(x, 1); };
  expect_gradients(f, on(array({{0.0, 2.0, 3.0}, {0.0, 0.0, 3.0}, {0.0, 0.0, 0.0}})));
  const Variable x(on(array({{0.0, 2.0, 3.0}, {0.0, 0.0, 3.0}})));
  F::sum(f(x)).backward();
  EXPECT_EQ(testing::difference(x.grad(), on(array({{6.0, 0.0, 0.0}, {0.0, 0.0, 0.0}}))), "");
}

// A sample with a NaN has no answer.
TEST_P(Choice, MeasuresOfNan) {
  const Array y = on(array({{kNan, 1.0}, {2.0, 1.0}, {0.0, 1.0}, {2.0, kNan}}));
  const Array t = on(array({0, 0, 1, 1}));
  EXPECT_EQ(testing::difference(F::confusion_matrix(y, t).data(),
                                on(array<int64_t>({{1, 0}, {0, 1}}, cpu()))),
            "");
  EXPECT_EQ(testing::difference(F::recall(y, t).data(), on(array({0.5, 0.5}))), "");
  EXPECT_EQ(testing::difference(F::precision(y, t).data(), on(array({1.0, 1.0}))), "");
  EXPECT_EQ(F::top_k_accuracy(y, t, 1).data().item<double>(), 0.5);
  EXPECT_EQ(F::top_k_accuracy(y, t, 2).data().item<double>(), 0.5);
  EXPECT_EQ(
      F::binary_accuracy(on(array({kNan, kNan, 1.0})), on(array({0, 1, 1}))).data().item<double>(),
      1. / 3);
  EXPECT_TRUE(
      std::isnan(F::r2_score(on(array({kNan, 1.0})), on(array({0.0, 1.0}))).data().item<double>()));
  EXPECT_EQ(error_of<ValueError>([&] {
              F::r2_score(draw({0, 2}), draw({0, 2}));
            }),
            "R2Score: expected at least one sample, got shape (0, 2)");
}

TEST_P(Choice, EqualScoresCountInTheirOrder) {
  const Array y = on(array({{1.0, 1.0, 1.0}, {1.0, 1.0, 1.0}})), t = on(array({1, 2}));
  EXPECT_EQ(F::top_k_accuracy(y, t, 1).data().item<double>(),
            F::accuracy(y, t).data().item<double>());
  EXPECT_EQ(F::top_k_accuracy(y, t, 2).data().item<double>(), 0.5);
  EXPECT_EQ(F::confusion_matrix(y, t).data()(1, 0).item<int64_t>(), 1);
}

// A replay pads what the array has then, and the gradient goes back.
TEST(Padding, IsCapturedInEveryMode) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  for (const PadMode mode : {PadMode::kConstant, PadMode::kEdge, PadMode::kReflect,
                             PadMode::kSymmetric, PadMode::kWrap}) {
    const Variable x(random_array({3, 4}, -1, 1, Dtype::kFloat32, gpu, 1));
    const Array gy = random_array({4, 9}, -1, 1, Dtype::kFloat32, gpu, 2);
    Array y, gx;
    const auto step = [&] {
      const Variable result = F::pad(x, PadWidths{{1, 0}, {2, 3}}, mode, 0.5);
      x.set_grad(Array());
      result.set_grad(gy);
      result.backward();
      y = result.data(), gx = x.grad();
    };
    step();  // compiles the kernels
    cuda::Graph graph = cuda::Graph::capture(gpu, step);
    const Array captured_y = y, captured_gx = gx;
    for (const uint64_t seed : {3, 4}) {
      x.data().assign(random_array({3, 4}, -1, 1, Dtype::kFloat32, gpu, seed));
      graph.launch();
      const Array replayed_y = captured_y.copy(), replayed_gx = captured_gx.copy();
      step();
      EXPECT_EQ(testing::difference(replayed_y, y), "") << int(mode);
      EXPECT_EQ(testing::difference(replayed_gx, gx), "") << int(mode);
    }
  }
}

CATENA_ON_DEVICES(Choice);

// Nothing waits for the GPU.
TEST(ChoiceGraph, CapturesForwardAndBackward) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  const Variable x(random_array({6, 3}, -1, 1, Dtype::kFloat32, gpu, 1));
  const Array t = array({0, 1, 2, -1, 1, 0}).to(gpu), places = array({2, 0}).to(gpu);
  const Array w = array({0.5f, 2.f, 1.f}).to(gpu);
  Array gradient, matrix, best;
  const auto step = [&] {
    x.set_grad(Array());
    const Variable loss = F::softmax_cross_entropy(
        x, t, {.reduction = F::Reduction::kSum, .class_weight = w, .label_smoothing = 0.1});
    const Variable chosen = F::sum(F::logsumexp(F::take(x, places, 1), 1));
    const Variable along = F::sum(F::take_along_axis(x, t.expand_dims(1), 1));
    (loss + chosen + along).backward();
    gradient = x.grad();
    matrix = F::confusion_matrix(x, t, -1).data();
    best = F::top_k_accuracy(x, t, 2, -1).data();
  };
  step();
  const Array expected = gradient.copy(), counts = matrix.copy(), share = best.copy();
  cuda::Graph graph = cuda::Graph::capture(gpu, step);
  graph.launch();
  assert_allclose(gradient, expected, 1e-6, 1e-6);
  EXPECT_EQ(testing::difference(matrix, counts), "");
  EXPECT_EQ(testing::difference(best, share), "");
}

}  // namespace
}  // namespace catena
