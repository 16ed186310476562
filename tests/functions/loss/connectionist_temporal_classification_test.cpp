// Lengths by sample, samples without an alignment, and large problems; values are in the function
// oracle, gradients have records.
#include "catena/functions/loss/connectionist_temporal_classification.h"

#include "catena/array/indexing.h"
#include "catena/core/graph.h"
#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

constexpr auto kCtc = [](const auto& x, const Array& t, int32_t blank,
                         const F::ConnectionistTemporalClassificationOptions& options = {}) {
  return F::connectionist_temporal_classification(x, t, blank, options);
};
constexpr F::Reduction kNone = F::Reduction::kNone;

class Ctc : public OnDevice {
 protected:
  Array labels(const std::vector<int32_t>& values, const Shape& shape) const {
    return array(values, shape).to(device());
  }
  void expect_first_gradients(const VariableFunction& f, const Arrays& inputs) const {
    EXPECT_NO_THROW(check_backward(f, inputs, tolerance(1e-5, 1e-6, 1e-5)));
  }
};
CATENA_ON_DEVICES(Ctc);

TEST_P(Ctc, LengthsBySample) {
  const Array x = draw({5, 4, 4}, -2, 2);
  // What is behind the labels of a sample does not count: not even the blank, or -1.
  const Array t = labels({0, 3, 2, 2, -1, 1, 3, 3, 99, 1, 1, 1}, {4, 3});
  const std::vector<int32_t> steps{5, 3, 4, 2}, counts{3, 1, 2, 0};
  for (const Dtype dtype : {Dtype::kInt32, Dtype::kInt64, Dtype::kUInt8}) {
    const F::ConnectionistTemporalClassificationOptions options{
        .input_length = labels(steps, {4}).astype(dtype),
        .label_length = labels(counts, {4}).astype(dtype),
        .reduction = kNone};
    const Variable scored(x);
    const Variable y = kCtc(scored, t, 1, options);
    for (int64_t i = 0; i < 4; ++i) {
      const Slice own(i, i + 1);
      const Array alone =
          kCtc(x(Slice(0, steps[size_t(i)]), own), t(own, Slice(0, counts[size_t(i)])), 1).data();
      EXPECT_NEAR(y.data()(i).item<double>(), alone.item<double>(), 1e-10) << i;
    }
    y.set_grad(ones({4}, {Dtype::kFloat64, device()}));
    y.backward();
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(sum(abs(scored.grad()(Slice(steps[size_t(i)], none), i))).item<double>(), 0);
    expect_first_gradients([&](const Variables& v) { return Variables{kCtc(v[0], t, 1, options)}; },
                           {x});
  }
  // No step and no label: the empty path, of probability 1.
  const F::ConnectionistTemporalClassificationOptions nothing{
      .input_length = labels({0, 0, 0, 0}, {4}), .label_length = labels({0, 0, 0, 0}, {4})};
  const Variable scored(x);
  const Variable y = kCtc(scored, t, 1, nothing);
  EXPECT_EQ(y.data().item<double>(), 0);
  y.backward();
  EXPECT_EQ(sum(abs(scored.grad())).item<double>(), 0);
}

// A loop may fill one array with the lengths of each batch.
TEST_P(Ctc, LengthsMayBeOverwrittenBeforeBackward) {
  const Array start = draw({5, 2, 3}), t = labels({1, 2, 2, 1}, {2, 2});
  const Array steps = labels({3, 4}, {2}), count = labels({1, 2}, {2});
  const F::ConnectionistTemporalClassificationOptions options{.input_length = steps,
                                                              .label_length = count};
  const Variable x(start), again(start);
  const Variable loss = kCtc(x, t, 0, options);
  kCtc(again, t, 0, options).backward();
  steps.fill(5);
  count.fill(0);
  loss.backward();
  EXPECT_EQ(testing::difference(x.grad(), again.grad()), "");
}

// Three steps for two equal labels are enough, two are not.
TEST_P(Ctc, SamplesWithoutAnAlignment) {
  const Array x = draw({2, 2, 3}), t = labels({1, 1, 1, 2}, {2, 2});
  const std::string text =
      "ConnectionistTemporalClassification: the 2 labels of sample 0 need at least 3 steps, with a "
      "blank between equal neighbours, but it has 2";
  EXPECT_EQ(error_of<ValueError>([&] { F::check_ctc_labels(t, 2, 3, 0); }), text);
  EXPECT_NO_THROW(F::check_ctc_labels(t, 3, 3, 0));
  if (device().is_cpu()) {
    EXPECT_EQ(error_of<ValueError>([&] { kCtc(x, t, 0); }), text);
    return;
  }
  const Variable scored(x);
  const Variable y = kCtc(scored, t, 0, {.reduction = kNone});
  const std::vector<double> losses = y.data().to_vector<double>();
  EXPECT_EQ(losses[0], std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isfinite(losses[1]));
  y.set_grad(ones({2}, {Dtype::kFloat64, device()}));
  y.backward();
  EXPECT_EQ(sum(abs(scored.grad()(Slice(), 0))).item<double>(), 0);
  EXPECT_GT(sum(abs(scored.grad()(Slice(), 1))).item<double>(), 0);
}

TEST_P(Ctc, LabelsAndLengthsOutOfRange) {
  const Array x = draw({4, 2, 3}), good = labels({1, 2, 2, 1}, {2, 2});
  const auto expect_refused = [&](const Array& t,
                                  const F::ConnectionistTemporalClassificationOptions& options,
                                  const std::string& text) {
    const std::string whole = "ConnectionistTemporalClassification: " + text;
    EXPECT_EQ(error_of<ValueError>([&] { F::check_ctc_labels(t, 4, 3, 0, options); }), whole);
    if (device().is_cpu()) {
      EXPECT_EQ(error_of<ValueError>([&] { kCtc(x, t, 0, options); }), whole);
      return;
    }
    const Variable scored(x);
    F::ConnectionistTemporalClassificationOptions each = options;
    each.reduction = kNone;
    const Variable y = kCtc(scored, t, 0, each);
    const std::vector<double> losses = y.data().to_vector<double>();
    EXPECT_TRUE(std::isfinite(losses[0])) << text;
    EXPECT_TRUE(std::isnan(losses[1])) << text;
    y.set_grad(ones({2}, {Dtype::kFloat64, device()}));
    y.backward();
    EXPECT_EQ(sum(abs(scored.grad()(Slice(), 1))).item<double>(), 0) << text;
  };
  expect_refused(labels({1, 2, 2, 3}, {2, 2}), {}, "label 3 of sample 1 is outside [0, 3)");
  expect_refused(labels({1, 2, -1, 1}, {2, 2}), {}, "label -1 of sample 1 is outside [0, 3)");
  expect_refused(labels({1, 2, 0, 1}, {2, 2}), {}, "a label of sample 1 is the blank_symbol 0");
  expect_refused(good, {.input_length = labels({4, 5}, {2})},
                 "input_length 5 of sample 1 is outside [0, 4]");
  expect_refused(good, {.input_length = labels({4, -1}, {2})},
                 "input_length -1 of sample 1 is outside [0, 4]");
  expect_refused(good, {.label_length = labels({2, 3}, {2})},
                 "label_length 3 of sample 1 is outside [0, 2]");
  EXPECT_EQ(error_of<ValueError>([&] { kCtc(x, good, 0, {.input_length = labels({4}, {1})}); }),
            "ConnectionistTemporalClassification: expected input_length as integers of shape (2,), "
            "got int32 (1,)");
  EXPECT_THROW(kCtc(x, good, 0, {.label_length = draw({2})}), ValueError);
  EXPECT_EQ(error_of<DtypeError>([&] {
              F::check_ctc_labels(draw({2, 2}), 4, 3, 0);
            }),
            "ConnectionistTemporalClassification: expected labels of int32 or int64, got float64");
  EXPECT_EQ(error_of<ValueError>([&] { F::check_ctc_labels(good, 4, 3, 3); }),
            "ConnectionistTemporalClassification: blank_symbol 3 is outside [0, 3), the classes");
  const Array large = array(std::vector<int64_t>{1, 2, 2, int64_t{1} << 40}).to(device());
  EXPECT_EQ(error_of<ValueError>([&] {
              F::check_ctc_labels(large.reshape({2, 2}), 4, 3, 0);
            }),
            "ConnectionistTemporalClassification: label 1099511627776 of sample 1 is outside "
            "[0, 3)");
  EXPECT_EQ(error_of<ValueError>([&] { kCtc(x, good, 0, {.input_length = Array()}); }),
            "ConnectionistTemporalClassification: input_length is an undefined array");
  EXPECT_EQ(error_of<ShapeError>([&] {
              kCtc(Variables{draw({4, 2, 3})}, good, 0);
            }),
            "ConnectionistTemporalClassification: expected scores (batch, classes) of each step, "
            "got shape (4, 2, 3) at step 0");
  EXPECT_THROW(kCtc(x, good.to(cpu(7)), 0), DeviceError);
  EXPECT_THROW(kCtc(x, good, 0, {.label_length = array(std::vector<int32_t>{1, 1}).to(cpu(7))}),
               DeviceError);
}

// Probabilities that float32 does not hold, and scores whose exponentials it does not.
TEST_P(Ctc, LargeScoresAndLongPaths) {
  const Array x = draw({60, 2, 5}, -40, 40, 3, Dtype::kFloat32) + 1000.0;
  const Array t = random_array({2, 20}, 1, 5, Dtype::kInt32, device(), 4);
  const Variable narrow(x), wide(x.astype(Dtype::kFloat64));
  const Variable y = kCtc(narrow, t, 0), exact = kCtc(wide, t, 0);
  y.backward();
  exact.backward();
  EXPECT_GT(exact.data().item<double>(), 100);
  EXPECT_NEAR(y.data().item<double>() / exact.data().item<double>(), 1, 1e-5);
  EXPECT_NO_THROW(assert_allclose(narrow.grad(), wide.grad(), 2e-3, 1e-3));
}

TEST_P(Ctc, RefusesSecondGradients) {
  const Variable x(draw({4, 1, 3}));
  EXPECT_THROW(kCtc(x, labels({0, 2}, {1, 2}), 1).backward({.create_graph = true}), GradientError);
}

// More positions than threads of a block, more classes than lanes of a warp, labels that repeat.
TEST_P(Ctc, LargeProblemsAreThoseOfTheCpu) {
  const Array x = random_array({700, 3, 75}, -2, 2, Dtype::kFloat32, cpu(), 1),
              t = random_array({3, 200}, 1, 75, Dtype::kInt32, cpu(), 2),
              few = random_array({3, 150}, 1, 4, Dtype::kInt32, cpu(), 5);
  for (const Array& own : {t, few}) {
    const auto run = [&](Device where) {
      const Variable scored(x.to(where));
      const F::ConnectionistTemporalClassificationOptions options{
          .label_length = array(std::vector<int32_t>{120, 150, 3}).to(where)};
      const Variable y = kCtc(scored, own.to(where), 0, options);
      y.backward();
      return Arrays{y.data().to_cpu(), scored.grad().to_cpu()};
    };
    const Arrays expected = run(cpu(0)), got = run(device());
    EXPECT_NO_THROW(assert_allclose(got[0], expected[0], 1e-4, 1e-4));
    // Of a sample with few ways through many steps the roundings of each step add up.
    EXPECT_NO_THROW(assert_allclose(got[1], expected[1], 1e-5, 5e-3));
  }
}

// From 2^18 scores on, kernels of their own read x.
TEST_P(Ctc, ManyScoresAreThoseOfTheCpu) {
  const Array x = random_array({4, 3, 22000}, -2, 2, Dtype::kFloat32, cpu(), 1),
              t = random_array({3, 2}, 1, 22000, Dtype::kInt32, cpu(), 2);
  const auto run = [&](Device where) {
    const Variable scored(x.to(where));
    const Variable y = kCtc(scored, t.to(where), 0);
    y.backward();
    return Arrays{y.data().to_cpu(), scored.grad().to_cpu()};
  };
  const Arrays expected = run(cpu(0)), got = run(device());
  EXPECT_NO_THROW(assert_allclose(got[0], expected[0], 1e-5, 1e-5));
  EXPECT_NO_THROW(assert_allclose(got[1], expected[1], 1e-7, 1e-4));
}

TEST(CtcOnGpu, IsCaptured) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const Variable x(random_array({20, 4, 9}, -1, 1, Dtype::kFloat32, gpu, 1));
  const Array t = random_array({4, 6}, 1, 9, Dtype::kInt32, gpu, 2);
  Array y, gx;
  const auto step = [&] {
    x.set_grad(Array());
    const Variable loss = kCtc(x, t, 0);
    loss.backward();
    y = loss.data(), gx = x.grad();
  };
  step();  // kernels are not loaded during a capture
  cuda::Graph graph = cuda::Graph::capture(gpu, step);
  const Array captured_y = y, captured_gx = gx;
  for (const uint64_t seed : {3, 4}) {
    x.data().assign(random_array({20, 4, 9}, -1, 1, Dtype::kFloat32, gpu, seed));
    graph.launch();
    const Array replayed_y = captured_y.copy(), replayed_gx = captured_gx.copy();
    step();
    EXPECT_EQ(testing::difference(replayed_y, y), "");
    EXPECT_EQ(testing::difference(replayed_gx, gx), "");
  }
}

}  // namespace
}  // namespace catena
