// softmax_cross_entropy with the gradient in place of the scores: the same numbers as without, and
// what must not be done to overwritten scores.
#include <limits>

#include "catena/array/logic.h"
#include "catena/autograd/parameter.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/transpose.h"
#include "catena/functions/loss.h"
#include "catena/functions/recompute.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using F::Reduction;
using F::SoftmaxCrossEntropyOptions;

class GradientInPlace : public OnDevice {
 protected:
  Array labels(const Shape& shape, int64_t classes) const {
    const int64_t n = shape.size() == 0 ? 1 : shape[0] * (shape.size() > 1 ? shape[1] : 1);
    std::vector<int32_t> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(i % 5 == 3 ? -1 : int32_t(i * 7 % classes));
    return array(values, shape).to(device());
  }
  // Scores that a function has made, and their root.
  struct Scores {
    Variable root, scores;
    explicit Scores(const Array& x) : root(x), scores(root * 1.0) {}
  };
  // The loss and the gradient of the root, with backward from gy.
  struct Outcome {
    Array loss, grad;
  };
  static Outcome run(const Array& x, const Array& t, const SoftmaxCrossEntropyOptions& options,
                     const Array& gy) {
    const Scores s(x);
    const Variable loss = F::softmax_cross_entropy(s.scores, t, options);
    loss.set_grad(gy);
    loss.backward();
    return {loss.data(), s.root.grad()};
  }
  void expect_same(const Array& x, const Array& t, SoftmaxCrossEntropyOptions options, double gy,
                   const std::string& what) const {
    const Shape shape = options.reduction == Reduction::kNone ? t.shape() : Shape{};
    Array g = full(shape, gy, {x.dtype(), device()});
    if (shape.size() > 0) g = g + arange(t.size(), {x.dtype(), device()}).reshape(shape) % 3;
    const Outcome plain = run(x, t, options, g);
    options.gradient_in_place = true;
    const Outcome in_place = run(x, t, options, g);
    // Twice the rounding: once as it is written, once as it is multiplied.
    const double eps = x.dtype() == Dtype::kFloat64   ? 1e-13
                       : x.dtype() == Dtype::kFloat32 ? 2e-6
                       : x.dtype() == Dtype::kFloat16 ? 3e-3
                                                      : 2e-2;
    const auto near = [&](const Array& a, const Array& b, const char* part) {
      ASSERT_EQ(a.dtype(), b.dtype()) << what << part;
      ASSERT_EQ(a.shape(), b.shape()) << what << part;
      const auto va = a.to_vector<double>(), vb = b.to_vector<double>();
      for (size_t i = 0; i < va.size(); ++i)
        ASSERT_NEAR(va[i], vb[i], eps * (1e-2 + std::fabs(vb[i]))) << what << part << i;
    };
    near(in_place.loss, plain.loss, ", loss ");
    near(in_place.grad, plain.grad, ", gradient ");
  }
};

TEST_P(GradientInPlace, IsTheGradientOfAllOptions) {
  for (const Dtype d : {Dtype::kFloat64, Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16})
    for (const Shape& shape : {Shape{9, 7}, Shape{6, 64}, Shape{3, 1000}, Shape{4, 5, 3}}) {
      Shape of_labels = {shape[0]};
      if (shape.size() > 2) of_labels = {shape[0], shape[2]};
      const Array x = draw(shape, -4, 4, 1, d), t = labels(of_labels, shape[1]);
      for (const Reduction r : {Reduction::kMean, Reduction::kSum, Reduction::kNone})
        for (int variant = 0; variant < 8; ++variant)
          for (const double gy : {1.0, 3.0}) {
            SoftmaxCrossEntropyOptions options{.normalize = (variant & 1) == 0, .reduction = r};
            if (variant & 2) options.class_weight = draw({shape[1]}, 0.5, 2, 2, d);
            if (variant & 4) options.label_smoothing = 0.2;
            expect_same(
                x, t, options, gy,
                message(d, " ", shape, " reduction ", int(r), " variant ", variant, " gy ", gy));
            if (HasFatalFailure()) return;
          }
    }
}

TEST_P(GradientInPlace, IsInTheMemoryOfTheScores) {
  const Array t = labels({6}, 5);
  const Scores s(draw({6, 5}));
  const Array before = s.scores.data().copy();
  const void* memory = s.scores.data().raw_data();
  const Variable loss = F::softmax_cross_entropy(s.scores, t, {.gradient_in_place = true});
  const Variable reference(before);
  F::softmax_cross_entropy(reference, t).backward();
  EXPECT_TRUE(allclose(s.scores.data(), reference.grad(), 1e-12, 1e-14));
  EXPECT_EQ(s.scores.data().raw_data(), memory);
  loss.backward();
  EXPECT_TRUE(allclose(s.root.grad(), reference.grad(), 1e-12, 1e-14));
}

TEST_P(GradientInPlace, AnExpectedGradientIsWrittenAtOnce) {
  const Array t = labels({6}, 5), x = draw({6, 5});
  const Variable reference(x);
  const Variable plain = F::softmax_cross_entropy(reference, t);
  plain.set_grad(full({}, 1024.0, {Dtype::kFloat64, device()}));
  plain.backward();
  for (const double gy : {1024.0, 512.0}) {
    const Scores s(x);
    const Variable loss = F::softmax_cross_entropy(
        s.scores, t,
        {.gradient_in_place = true, .gradient_of_loss = full({}, 1024.0, Dtype::kFloat64)});
    EXPECT_TRUE(allclose(loss.data(), plain.data(), 1e-12, 0.0));
    EXPECT_TRUE(allclose(s.scores.data(), reference.grad(), 1e-12, 1e-12));
    loss.set_grad(full({}, gy, {Dtype::kFloat64, device()}));
    loss.backward();
    EXPECT_TRUE(allclose(s.root.grad(), reference.grad() * (gy / 1024), 1e-12, 1e-12));
  }
}

TEST_P(GradientInPlace, ViewsOfComputedScores) {
  const Array t = labels({2, 3}, 4), x = draw({2, 3, 4});
  const Variable reference(x);
  F::softmax_cross_entropy(F::reshape(reference, {6, 4}), t.reshape({6})).backward();
  const Scores s(x);
  const Variable rows = F::reshape(s.scores, {6, 4});
  F::softmax_cross_entropy(rows, t.reshape({6}), {.gradient_in_place = true}).backward();
  EXPECT_TRUE(allclose(s.root.grad(), reference.grad(), 1e-12, 1e-14));
  EXPECT_FALSE(allclose(s.scores.data(), x, 1e-3, 1e-3));  // their memory was taken
}

// A view whose root is gone is as good as computed scores, and may serve again and again.
TEST_P(GradientInPlace, ViewsOfWhatNobodyHolds) {
  const Array t = labels({4}, 5), x = draw({4, 5});
  const Variable scores = F::reshape(Variable(x.copy().reshape({20})), {4, 5});
  for (int i = 0; i < 2; ++i) {
    const Variable reference(scores.data().copy());
    F::softmax_cross_entropy(reference, t).backward();
    F::softmax_cross_entropy(scores, t, {.gradient_in_place = true}).backward();
    EXPECT_TRUE(allclose(scores.data(), reference.grad(), 1e-12, 1e-14));
  }
}

TEST_P(GradientInPlace, ScoresThatAreNotContiguousStay) {
  const Array t = labels({4}, 5), x = draw({5, 4});
  const Variable reference(x);
  F::softmax_cross_entropy(F::transpose(reference), t).backward();
  const Variable root(x);
  F::softmax_cross_entropy(F::transpose(root), t, {.gradient_in_place = true}).backward();
  EXPECT_TRUE(allclose(root.grad(), reference.grad(), 1e-12, 1e-14));
  EXPECT_EQ(testing::difference(root.data(), reference.data()), "");
}

TEST_P(GradientInPlace, WritesNothingWhereNoGradientIsWanted) {
  const Array t = labels({4}, 5), x = draw({4, 5}), before = x.copy();
  const SoftmaxCrossEntropyOptions options{.gradient_in_place = true};
  const double expected = F::softmax_cross_entropy(x, t).data().item<double>();
  const auto expect_plain = [&](const Variable& scores, const char* what) {
    EXPECT_DOUBLE_EQ(F::softmax_cross_entropy(scores, t, options).data().item<double>(), expected)
        << what;
    EXPECT_EQ(testing::difference(x, before), "") << what;
  };
  expect_plain(Variable::constant(x), "constant");
  expect_plain(Variable(x, Volatile::on), "volatile");
  const NoBackprop off;
  expect_plain(Variable(x), "NoBackprop");
}

TEST_P(GradientInPlace, OtherGradientsOfTheScoresAddUp) {
  const Array t = labels({4}, 5), x = draw({4, 5});
  const auto total = [&](bool in_place) {
    const Scores s(x);
    const Variable mean = F::sum(s.scores);  // which keeps nothing of the scores
    (mean + F::softmax_cross_entropy(s.scores, t, {.gradient_in_place = in_place})).backward();
    return s.root.grad();
  };
  EXPECT_TRUE(allclose(total(true), total(false), 1e-12, 1e-14));
}

TEST_P(GradientInPlace, FunctionsThatSavedTheScoresNotice) {
  const Array t = labels({4}, 5);
  const Scores s(draw({4, 5}));
  const Variable square = F::sum(s.scores * s.scores);
  const Variable loss = square + F::softmax_cross_entropy(s.scores, t, {.gradient_in_place = true});
  const std::string text = error_of<GradientError>([&] { loss.backward(); });
  expect_contains(text, {"which was overwritten after the forward pass"});
}

TEST_P(GradientInPlace, AnOverwrittenGradientIsNoticed) {
  const Array t = labels({4}, 5);
  const Scores s(draw({4, 5}));
  const Variable loss = F::softmax_cross_entropy(s.scores, t, {.gradient_in_place = true});
  s.scores.data().fill(0);
  EXPECT_EQ(error_of<GradientError>([&] { loss.backward(); }),
            "SoftmaxCrossEntropy: backward needs input 0 (shape (4, 5), float64), which was "
            "overwritten after the forward pass; write into a copy instead");
  // So does a second loss of the same scores.
  const Scores two(draw({4, 5}));
  const Variable first = F::softmax_cross_entropy(two.scores, t, {.gradient_in_place = true});
  const Variable second = F::softmax_cross_entropy(two.scores, t, {.gradient_in_place = true});
  EXPECT_THROW((first + second).backward(), GradientError);
}

TEST_P(GradientInPlace, RunsBackwardOnce) {
  const Array t = labels({4}, 5);
  const Scores s(draw({4, 5}));
  const Variable loss = F::softmax_cross_entropy(s.scores, t, {.gradient_in_place = true});
  EXPECT_EQ(error_of<GradientError>([&] { loss.backward({.create_graph = true}); }),
            "SoftmaxCrossEntropy: create_graph needs the scores, which gradient_in_place has "
            "overwritten; leave gradient_in_place out");
  loss.backward();
  EXPECT_EQ(error_of<GradientError>([&] { loss.backward(); }),
            "SoftmaxCrossEntropy: backward came a second time, but gradient_in_place keeps the "
            "gradient for one; leave it out, or call the loss anew on scores computed anew");
}

TEST_P(GradientInPlace, RefusesWhatTheUserOwns) {
  const Array t = labels({4}, 5), x = draw({4, 5}), before = x.copy();
  const SoftmaxCrossEntropyOptions options{.gradient_in_place = true};
  const Variable given(x);
  EXPECT_EQ(error_of<ValueError>([&] { F::softmax_cross_entropy(given, t, options); }),
            "SoftmaxCrossEntropy: gradient_in_place would overwrite a variable that was given and "
            "not computed, which the scores (shape (4, 5), float64) are or show; give scores that "
            "a function computes, or leave gradient_in_place out");
  EXPECT_THROW(F::softmax_cross_entropy(F::reshape(F::reshape(given, {20}), {4, 5}), t, options),
               ValueError);
  const Parameter p(x);
  const std::string text = error_of<ValueError>([&] { F::softmax_cross_entropy(p, t, options); });
  expect_contains(text, {"would overwrite parameter '"});
  EXPECT_EQ(testing::difference(x, before), "");
  EXPECT_EQ(testing::difference(p.data(), before), "");
}

TEST_P(GradientInPlace, RefusesOptionsThatDoNotFit) {
  const Array t = labels({4}, 5), x = draw({4, 5});
  const Scores s(x);
  EXPECT_EQ(error_of<ValueError>(
                [&] { F::softmax_cross_entropy(s.scores, x, {.gradient_in_place = true}); }),
            "SoftmaxCrossEntropy: gradient_in_place takes labels, got distributions over the "
            "classes (shape (4, 5), float64); leave gradient_in_place out");
  EXPECT_EQ(error_of<ValueError>([&] {
              F::softmax_cross_entropy(s.scores, t, {.gradient_of_loss = full({}, 2.0)});
            }),
            "SoftmaxCrossEntropy: gradient_of_loss goes with gradient_in_place alone");
  EXPECT_EQ(error_of<ValueError>([&] {
              F::softmax_cross_entropy(
                  s.scores, t, {.gradient_in_place = true, .gradient_of_loss = full({2}, 2.0)});
            }),
            "SoftmaxCrossEntropy: expected a gradient_of_loss of one float without axes, got "
            "shape (2,) of float64");
  EXPECT_EQ(testing::difference(s.scores.data(), x), "");
}

// The function inside is called again in backward, on scores computed anew.
TEST_P(GradientInPlace, InsideRecompute) {
  const Array t = labels({4}, 5), x = draw({4, 5});
  const auto grad = [&](bool in_place) {
    const Variable root(x);
    F::recompute(
        [&](const Variable& v) {
          return F::softmax_cross_entropy(v * 2.0, t, {.gradient_in_place = in_place});
        },
        root)
        .backward();
    return root.grad();
  };
  EXPECT_TRUE(allclose(grad(true), grad(false), 1e-12, 1e-14));
}

TEST_P(GradientInPlace, WithoutValidLabelsAndWithoutSamples) {
  const Array ignored = full({3}, -1, Dtype::kInt32).to(device());
  const Scores s(draw({3, 4}));
  const Variable loss = F::softmax_cross_entropy(s.scores, ignored, {.gradient_in_place = true});
  EXPECT_EQ(loss.data().item<double>(), 0);
  loss.backward();
  EXPECT_EQ(testing::difference(s.root.grad(), zeros_like(s.root.data())), "");
  const Scores none(draw({0, 4}));
  const Variable empty_loss = F::softmax_cross_entropy(
      none.scores, full({0}, 0, Dtype::kInt32).to(device()), {.gradient_in_place = true});
  empty_loss.backward();
  EXPECT_EQ(empty_loss.data().item<double>(), 0);
  EXPECT_EQ(none.root.grad().shape(), (Shape{0, 4}));
}

TEST_P(GradientInPlace, MaskedAndLargeScores) {
  const double low = -std::numeric_limits<double>::infinity();
  const Array x = array({{1000.0, low, 999.0}, {low, -1e4, low}}).to(device());
  const Array t = array(std::vector<int32_t>{2, 1}, {2}).to(device());
  const SoftmaxCrossEntropyOptions options{};
  expect_same(x, t, options, 1.0, "masked");
}

CATENA_ON_DEVICES(GradientInPlace);

}  // namespace
}  // namespace catena
