#include "catena/functions/loss.h"

#include <cmath>

#include "catena/functions/evaluation.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Loss : public OnDevice {
 protected:
  Array labels(const std::vector<int32_t>& values, const Shape& shape) const {
    return array(values, shape).to(device());
  }
};

// The definition, in double on the host: x (n, c, rest), t (n, rest).
double cross_entropy(const Array& x, const Array& t, bool normalize, int ignore) {
  const std::vector<double> v = x.to_vector<double>();
  const std::vector<int32_t> label = t.to_vector<int32_t>();
  const int64_t n = x.shape()[0], c = x.shape()[1], inner = n && c ? x.size() / (n * c) : 0;
  double total = 0, count = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < inner; ++k) {
      const int32_t l = label[size_t(i * inner + k)];
      if (l == ignore) continue;
      const auto at = [&](int64_t j) { return v[size_t((i * c + j) * inner + k)]; };
      double sum = 0;
      for (int64_t j = 0; j < c; ++j) sum += std::exp(at(j));
      total += std::log(sum) - at(l);
      count += 1;
    }
  }
  const double divisor = normalize ? count : double(n);
  return divisor > 0 ? total / divisor : 0;
}

TEST_P(Loss, SoftmaxCrossEntropyOfEveryRank) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{4, 3}, {4}}, {{4, 3, 2}, {4, 2}}, {{2, 3, 2, 3}, {2, 2, 3}}};
  for (const auto& [xs, ts] : shapes) {
    const Array x = draw(xs, -2, 2, 1);
    for (const Dtype dtype : {Dtype::kInt32, Dtype::kInt64}) {
      const Array t = draw(ts, -1, 3, 2, dtype);  // -1 is ignored
      for (bool normalize : {true, false}) {
        const Variable loss = F::softmax_cross_entropy(x, t, normalize);
        EXPECT_EQ(loss.ndim(), 0);
        EXPECT_NEAR(loss.data().item<double>(), cross_entropy(x, t, normalize, -1), 1e-10);
        const auto f = [&](const Variable& v) { return F::softmax_cross_entropy(v, t, normalize); };
        expect_gradients(f, x, "cross entropy");
        expect_gradients(f, padded(x), "cross entropy, padded");
      }
    }
    const Array t = draw(ts, 0, 3, 2, Dtype::kInt32);
    EXPECT_NEAR(F::softmax_cross_entropy(x, padded(t), true, 1).data().item<double>(),
                cross_entropy(x, t, true, 1), 1e-10);
  }
}

TEST_P(Loss, SoftmaxCrossEntropyWithoutValidLabelsIsZero) {
  const Array t = labels({-1, -1}, {2});
  const Variable x(draw({2, 3}));
  const Variable loss = F::softmax_cross_entropy(x, t);
  EXPECT_EQ(loss.data().item<double>(), 0);
  loss.backward();
  EXPECT_EQ(testing::difference(x.grad(), zeros_like(x.data())), "");
  expect_gradients([&](const Variable& v) { return F::softmax_cross_entropy(v, t); }, x.data(),
                   "all ignored");
  const Variable nothing(draw({0, 3}));
  EXPECT_EQ(F::softmax_cross_entropy(nothing, labels({}, {0})).data().item<double>(), 0);
}

TEST_P(Loss, SoftmaxCrossEntropyDoesNotOverflow) {
  const Array x = array({{1000.0, 0.0, -1000.0}, {-1e4, 0.0, 1e4}}).to(device());
  const Variable loss = F::softmax_cross_entropy(Variable(x), labels({0, 2}, {2}));
  EXPECT_EQ(loss.data().item<double>(), 0);
}

TEST_P(Loss, NarrowDtypesAgreeWithDouble) {
  const Array t = draw({4}, 0, 3, 2, Dtype::kInt32);
  for (const auto& [dtype, bound] :
       {std::pair{Dtype::kFloat32, 1e-5}, {Dtype::kFloat16, 1e-2}, {Dtype::kBFloat16, 5e-2}}) {
    const Array x = draw({4, 3}, -2, 2, 1, dtype);
    const Variable narrow(x), wide(x.astype(Dtype::kFloat64));
    const Variable a = F::softmax_cross_entropy(narrow, t), b = F::softmax_cross_entropy(wide, t);
    EXPECT_EQ(a.dtype(), dtype);
    EXPECT_NO_THROW(assert_allclose(a.data(), b.data(), bound, bound));
    a.backward();
    b.backward();
    EXPECT_NO_THROW(assert_allclose(narrow.grad(), wide.grad(), bound, bound));
  }
}

TEST_P(Loss, LabelsOutOfRange) {
  const Array x = draw({3, 3}), t = labels({0, 3, 1}, {3});
  if (device().is_cpu()) {
    EXPECT_EQ(message_of<ValueError>([&] { F::softmax_cross_entropy(x, t); }),
              "softmax_cross_entropy: label 3 at position 1 is outside [0, 3) and not the ignored "
              "label -1");
  } else {
    EXPECT_TRUE(std::isnan(F::softmax_cross_entropy(x, t).data().item<double>()));
  }
  const Array seven = labels({0, 1, 7}, {3}), ignored = labels({0, -1, 1}, {3});
  if (device().is_cpu()) {
    EXPECT_EQ(message_of<ValueError>([&] { F::accuracy(x, seven, -1); }),
              "accuracy: label 7 at position 2 is outside [0, 3) and not the ignored label -1");
  } else {
    EXPECT_LE(F::accuracy(x, seven).data().item<float>(), 2.0f / 3 + 1e-6f);
  }
  EXPECT_NO_THROW(F::accuracy(x, ignored, -1));
  EXPECT_LE(F::accuracy(x, ignored).data().item<float>(), 2.0f / 3 + 1e-6f);
  EXPECT_THROW(F::check_labels(t, 3), ValueError);
  EXPECT_THROW(F::check_labels(labels({-2}, {1}), 3), ValueError);
  EXPECT_NO_THROW(F::check_labels(t, 4));
  EXPECT_NO_THROW(F::check_labels(t, 3, 3));
}

TEST_P(Loss, OverwrittenLabelsAreNoticed) {
  const Array t = labels({0, 1}, {2});
  const Variable x(draw({2, 3}));
  const Variable loss = F::softmax_cross_entropy(x, t);
  t.fill(2);
  EXPECT_THROW(loss.backward(), GradientError);
}

TEST_P(Loss, MessagesOfSoftmaxCrossEntropy) {
  const std::string prefix = "Invalid operation is performed in: SoftmaxCrossEntropy (Forward)\n\n";
  const auto came = [](const char* scores, const char* shape, const char* dtype) {
    return message("Scores of shape (4, 3) in ", scores, " came with labels of shape ", shape,
                   " in ", dtype,
                   ". Expected are class numbers of 0 to 2 in int32 or int64, of shape (4,).");
  };
  EXPECT_EQ(message_of<InvalidType>([&] {
              F::softmax_cross_entropy(draw({4, 3}), labels({0, 1}, {2}));
            }),
            prefix + "Expect: in_types[0].shape[0] == in_types[1].shape[0]\nActual: 4 != 2\n" +
                came("float64", "(2,)", "int32"));
  EXPECT_EQ(message_of<InvalidType>([&] {
              F::softmax_cross_entropy(draw({4, 3}), draw({4}, 0, 3, 0, Dtype::kFloat32));
            }),
            prefix + "Expect: in_types[1].dtype == int32\nActual: float32 != int32\n" +
                came("float64", "(4,)", "float32") +
                " Convert the labels with .astype(dtype::int32).");
  EXPECT_EQ(message_of<InvalidType>([&] {
              F::softmax_cross_entropy(draw({4, 3}), labels({0, 1, 2, 0}, {4, 1}));
            }),
            prefix + "Expect: in_types[1].ndim == in_types[0].ndim - 1\nActual: 2 != 1\n" +
                came("float64", "(4, 1)", "int32") +
                " Drop the last axis of the labels with t.reshape({-1}).");
  const auto text_of = [](auto call) { return message_of<InvalidType>(call); };
  const Array x = draw({4, 3}), t = labels({0, 1, 2, 0}, {4});
  EXPECT_NE(text_of([&] {
              F::softmax_cross_entropy(t, x);
            }).find("The arguments look swapped: it is softmax_cross_entropy(scores, labels)."),
            std::string::npos);
  EXPECT_NE(text_of([&] {
              F::accuracy(t, x);
            }).find("The arguments look swapped: it is accuracy(scores, labels)."),
            std::string::npos);
  EXPECT_NE(text_of([&] { F::sigmoid_cross_entropy(t, x); }).find("look swapped"),
            std::string::npos);
  EXPECT_NE(text_of([&] { F::softmax_cross_entropy(x, x); }).find("argmax(t, 1)"),
            std::string::npos);
  EXPECT_NE(text_of([&] { F::accuracy(x, x); }).find("int32 or int64"), std::string::npos);
  EXPECT_NE(text_of([&] {
              F::mean_squared_error(x, draw({4, 3}, 0, 1, 0, Dtype::kFloat32));
            })
                .find("the float64 one with .astype(dtype::float32), or make arrays of float32 by "
                      "config().default_dtype"),
            std::string::npos);
}

TEST_P(Loss, UndefinedArgumentsNameTheFunction) {
  const Array x = draw({4, 3});
  EXPECT_EQ(message_of<ValueError>([&] { F::softmax_cross_entropy(x, Array()); }),
            "softmax_cross_entropy: got an undefined array");
  EXPECT_EQ(message_of<ValueError>([&] { F::softmax_cross_entropy(Variable(), x); }),
            "softmax_cross_entropy: got an undefined variable");
  EXPECT_EQ(message_of<ValueError>([&] { F::exp(Variable()); }), "exp: got an undefined variable");
  EXPECT_EQ(message_of<ValueError>([&] { Variable(x) + Variable(); }),
            "add: got an undefined variable");
}

TEST_P(Loss, MeanSquaredError) {
  const Array a = draw({4, 3}), b = draw({4, 3}, -1, 1, 1);
  EXPECT_NEAR(F::mean_squared_error(a, b).data().item<double>(), mean(square(a - b)).item<double>(),
              1e-14);
  const auto f = [](const Variables& v) { return Variables{F::mean_squared_error(v[0], v[1])}; };
  expect_gradients(f, {a, b}, "mse");
  expect_gradients(f, {padded(a), transposed_layout(b)}, "mse strided");
  expect_gradients(f, {draw({}), draw({}, -1, 1, 1)}, "mse 0-d");
  EXPECT_THROW(F::mean_squared_error(a, draw({3, 4})), InvalidType);
  EXPECT_EQ(F::mean_squared_error(draw({0, 3}), draw({0, 3})).data().item<double>(), 0);
}

TEST_P(Loss, SigmoidCrossEntropy) {
  const Array x = draw({4, 3}, -2, 2, 1), t = draw({4, 3}, -1, 2, 2, Dtype::kInt32);
  const std::vector<double> v = x.to_vector<double>();
  const std::vector<int32_t> label = t.to_vector<int32_t>();
  double total = 0, count = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    if (label[i] == -1) continue;
    total += std::log1p(std::exp(v[i])) - v[i] * label[i];
    count += 1;
  }
  ASSERT_GT(count, 0);
  ASSERT_LT(count, 12);
  EXPECT_NEAR(F::sigmoid_cross_entropy(x, t).data().item<double>(), total / 4, 1e-12);
  EXPECT_NEAR(F::sigmoid_cross_entropy(x, t, true).data().item<double>(), total / count, 1e-12);
  for (bool normalize : {false, true}) {
    expect_gradients([&](const Variable& a) { return F::sigmoid_cross_entropy(a, t, normalize); },
                     x, "sigmoid cross entropy");
  }
  EXPECT_THROW(F::sigmoid_cross_entropy(x, draw({4}, 0, 2, 0, Dtype::kInt32)), InvalidType);
}

TEST_P(Loss, Accuracy) {
  const Array y =
      array({{0.1f, 0.7f, 0.2f}, {0.9f, 0.0f, 0.1f}, {0.3f, 0.3f, 0.4f}, {1.f, 2.f, 3.f}})
          .to(device());
  const Variable a = F::accuracy(Variable(y), labels({1, 0, 0, -1}, {4}));
  EXPECT_EQ(a.dtype(), Dtype::kFloat32);
  EXPECT_EQ(a.data().item<float>(), 0.5f);
  EXPECT_FALSE(a.creator());
  EXPECT_FLOAT_EQ(F::accuracy(y, labels({1, 0, 0, -1}, {4}), -1).data().item<float>(), 2.0f / 3);
  EXPECT_EQ(F::accuracy(y.reshape({4, 3, 1, 1}), labels({1, 0, 2, 2}, {4})).data().item<float>(),
            1.0f);
  EXPECT_EQ(F::accuracy(y.reshape({2, 3, 2}),
                        array(std::vector<int64_t>{2, 0, 1, 1}, {2, 2}).to(device()))
                .dtype(),
            Dtype::kFloat32);
  EXPECT_THROW(F::accuracy(y, labels({1, 0}, {2})), InvalidType);
  EXPECT_THROW(F::accuracy(y.reshape({2, 3, 2}), labels({1, 0}, {2})), InvalidType);
}

CATENA_ON_DEVICES(Loss);

}  // namespace
}  // namespace catena
