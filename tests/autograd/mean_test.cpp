// Declared divisors of means: who declares one, and what hands it on.
#include "catena/autograd/mean.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/logic.h"
#include "catena/array/reduction.h"
#include "catena/autograd/backward_observer.h"
#include "catena/autograd/function.h"
#include "catena/autograd/parameter.h"
#include "catena/autograd/pass_start.h"
#include "catena/functions/array.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/functions/recompute.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/optimizers/sgd.h"
#include "error_text.h"

namespace catena {
namespace {

namespace F = catena::functions;

double counted(const Variable& v) {
  const Mean* mean = mean_of(v);
  return mean ? mean->counted.item<double>() : -1;
}

struct Case {
  Array scores = array(std::vector<double>{1, 2, 3, 3, 2, 1, 0, 1, 0, 2, 2, 1}).reshape({4, 3});
  Array labels = array(std::vector<int32_t>{0, -1, 2, 1});
  Array signs = array(std::vector<int32_t>{1, 0, -1, 1, -1, 0, 1, 1, 0, 0, 0, 1}).reshape({4, 3});
  Array weights = array(std::vector<double>{0.5, 1, 4});
  Variable x{scores};
};

TEST(Mean, LossesAndMeasuresSayWhatTheyDividedBy) {
  const Case c;
  EXPECT_EQ(counted(F::softmax_cross_entropy(c.x, c.labels)), 3);
  EXPECT_EQ(mean_of(F::softmax_cross_entropy(c.x, c.labels))->expected, 4);
  EXPECT_EQ(counted(F::softmax_cross_entropy(c.x, c.labels, {.class_weight = c.weights})), 5.5);
  EXPECT_EQ(counted(F::softmax_cross_entropy(c.x * 1, c.labels, {.gradient_in_place = true})), 3);
  EXPECT_EQ(counted(F::softmax_cross_entropy(c.x, full({4}, -1, dtype::int32),
                                             {.class_weight = c.weights})),
            0);
  EXPECT_EQ(counted(F::linear_cross_entropy(c.x, c.scores, c.labels)), 3);
  EXPECT_EQ(mean_of(F::linear_cross_entropy(c.x, c.scores, c.labels))->expected, 4);
  EXPECT_EQ(counted(F::linear_cross_entropy(c.scores, c.scores, full({4}, -1, dtype::int32))), 0);
  EXPECT_EQ(counted(F::negative_log_likelihood(c.x, c.labels, {.class_weight = c.weights})), 5.5);
  EXPECT_EQ(counted(F::sigmoid_cross_entropy(c.x, c.signs, true)), 10);
  EXPECT_EQ(counted(F::accuracy(c.scores, c.labels, -1)), 3);
  EXPECT_EQ(counted(F::top_k_accuracy(c.scores, c.labels, 2, -1)), 3);
  EXPECT_EQ(counted(F::binary_accuracy(c.scores, c.signs)), 10);
  EXPECT_EQ(counted(F::mean_over(F::sum(c.x), array(6.0))), 6);
}

// They count by samples.
TEST(Mean, OthersDeclareNothing) {
  const Case c;
  EXPECT_EQ(counted(F::softmax_cross_entropy(c.x, c.labels, {.normalize = false})), -1);
  EXPECT_EQ(counted(F::softmax_cross_entropy(c.x, c.labels, {.reduction = F::Reduction::kSum})),
            -1);
  EXPECT_EQ(
      counted(F::linear_cross_entropy(c.x, c.scores, c.labels, {.reduction = F::Reduction::kSum})),
      -1);
  EXPECT_EQ(counted(F::sigmoid_cross_entropy(c.x, c.signs, false)), -1);
  EXPECT_EQ(counted(F::accuracy(c.scores, c.labels)), -1);
  EXPECT_EQ(counted(F::mean_squared_error(c.x, c.x * 2)), -1);
}

TEST(Mean, CastsReshapesAndNumbersHandItOn) {
  const Case c;
  const Variable loss = F::softmax_cross_entropy(c.x, c.labels);
  for (const Variable& same :
       {F::cast(loss, dtype::float32), loss.reshape({1}), 2 * loss / 3 - 1, -loss,
        F::recompute(
            [labels = c.labels](const Variable& x) { return F::softmax_cross_entropy(x, labels); },
            c.x)})
    EXPECT_EQ(counted(same), 3);
  for (const Variable& other : {loss + loss, loss * loss, F::exp(loss), 1 / loss})
    EXPECT_EQ(counted(other), -1);
  optimizers::SGD rule;
  const auto scale = optimizers::add_loss_scale(rule);
  EXPECT_EQ(counted(rule.scaled(loss)), 3);
  EXPECT_EQ(counted(rule.scaled(F::cast(loss, dtype::float16))), 3);
}

TEST(Mean, AFunctionOfTheUserDeclaresIt) {
  struct Half : Function {
    Arrays forward(const Arrays& x) override {
      set_mean(array(2.0), 4);
      return {x[0] / 2};
    }
    Arrays backward(const Arrays&, const Arrays& gy) override { return {gy[0] / 2}; }
  };
  const Variable y = call(Half(), Variable(array(3.0)));
  EXPECT_EQ(counted(y), 2);
  EXPECT_EQ(mean_of(y)->expected, 4);
}

// Of the pass
// ---------------------------------------------------------------------------------------

struct Scaling : BackwardObserver {
  void gradient_is_final(ParameterState&) override {}
  void backward_starts(PassStart& start) override {
    is_mean = start.mean() != nullptr;
    means = start.means().size();
    if (is_mean)
      start.scale(array(0.5), 1);
    else
      start.scale_means(Arrays(means, array(0.5)), 1);
  }
  bool is_mean = false;
  size_t means = 0;
};

TEST(PassStart, ObserversScaleTheStartOrWhatFlowsIntoMeans) {
  const Case c;
  Parameter p(c.scores);
  p.data();
  const auto gradient = [&](const auto& loss_of) {
    p.zero_grad();
    loss_of(p.variable()).backward();
    return p.grad().copy();
  };
  const auto entropy = [&](const Variable& x) { return F::softmax_cross_entropy(x, c.labels); };
  const auto sum = [&](const Variable& x) {
    const Variable loss = entropy(x);
    return loss * 0.25 + loss * 0.75 + F::sum(x) + F::sigmoid_cross_entropy(x, c.signs, true);
  };
  const Array whole = gradient(entropy), all = gradient(sum);
  Scaling scaling;
  scaling.observe(p);
  EXPECT_TRUE(array_equal(gradient(entropy), whole * 0.5));
  EXPECT_TRUE(scaling.is_mean);
  const Array halved = gradient(sum);
  EXPECT_FALSE(scaling.is_mean);
  EXPECT_EQ(scaling.means, 2u);
  EXPECT_LE(amax(abs(halved - (all + 1) * 0.5)).item<double>(), 1e-15);
  // A second pass over the graph begins with one again.
  const Variable loss = entropy(p.variable());
  p.zero_grad();
  loss.backward();
  loss.backward();
  EXPECT_TRUE(array_equal(p.grad(), whole));
}

}  // namespace
}  // namespace catena
