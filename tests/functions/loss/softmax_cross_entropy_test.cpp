// Labels that do not count or are out of range, for the loss and for accuracy; everything else is
// in the function oracle.
#include "catena/functions/loss/softmax_cross_entropy.h"

#include "catena/functions/evaluation/accuracy.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Loss : public OnDevice {
 protected:
  Array labels(const std::vector<int32_t>& values, const Shape& shape) const {
    return array(values, shape).to(device());
  }
};

TEST_P(Loss, SoftmaxCrossEntropyWithoutValidLabelsIsZero) {
  const Array t = labels({-1, -1}, {2});
  const Variable x(draw({2, 3}));
  const Variable loss = F::softmax_cross_entropy(x, t);
  EXPECT_EQ(loss.data().item<double>(), 0);
  loss.backward();
  EXPECT_EQ(testing::difference(x.grad(), zeros_like(x.data())), "");
  expect_gradients([&](const Variable& v) { return F::softmax_cross_entropy(v, t); }, x.data(),
                   "all ignored");
}

TEST_P(Loss, LabelsOutOfRange) {
  const Array x = draw({3, 3}), t = labels({0, 3, 1}, {3});
  const Array seven = labels({0, 1, 7}, {3}), ignored = labels({0, -1, 1}, {3});
  if (device().is_cpu()) {
    EXPECT_EQ(error_of<ValueError>([&] { F::accuracy(x, seven, -1); }),
              "Accuracy: label 7 at position 2 is outside [0, 3) and not the ignored label -1");
  } else {
    EXPECT_LE(F::accuracy(x, seven).data().item<float>(), 2.0f / 3 + 1e-6f);
  }
  EXPECT_NO_THROW(F::accuracy(x, ignored, -1));
  EXPECT_LE(F::accuracy(x, ignored).data().item<float>(), 2.0f / 3 + 1e-6f);
  EXPECT_THROW(F::check_labels(t, 3), ValueError);
  EXPECT_THROW(F::check_labels(labels({-2}, {1}), 3), ValueError);
  EXPECT_NO_THROW(F::check_labels(t, 4));
  EXPECT_NO_THROW(F::check_labels(t, 3, 3));
  EXPECT_EQ(error_of<DtypeError>([&] { F::check_labels(draw({2}), 3); }),
            "SoftmaxCrossEntropy: expected labels of int32 or int64, got float64");
}

TEST_P(Loss, UndefinedArgumentsNameTheFunction) {
  const Array x = draw({4, 3});
  EXPECT_EQ(error_of<ValueError>([&] { F::exp(Variable()); }), "exp: got an undefined variable");
  EXPECT_EQ(error_of<ValueError>([&] { Variable(x) + Variable(); }),
            "add: got an undefined variable");
}

// Modulo 2^32 they are the classes 0 and 1.
TEST_P(Loss, LabelsThatInt32DoesNotHold) {
  const Array x = draw({3, 3});
  const int64_t large = int64_t{1} << 32;
  for (const int64_t label : {large, large + 1, -large, -large + 1}) {
    const Array t = array<int64_t>({0, label, 1}, cpu(0)).to(device());
    const std::string problem = message("label ", label, " at position 1 is outside [0, 3)");
    expect_contains(error_of<ValueError>([&] { F::check_labels(t, 3); }), {problem});
    if (device().is_cpu()) {
      expect_contains(error_of<ValueError>([&] { F::softmax_cross_entropy(x, t); }), {problem});
      expect_contains(error_of<ValueError>([&] { F::accuracy(x, t); }), {problem});
    } else {
      EXPECT_TRUE(std::isnan(F::softmax_cross_entropy(x, t).data().item<double>()));
      EXPECT_LE(F::accuracy(x, t).data().item<double>(), 2.0 / 3 + 1e-6);
    }
  }
}

CATENA_ON_DEVICES(Loss);

}  // namespace
}  // namespace catena
