#include "catena/autograd/gradient_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/function.h"
#include "catena/testing.h"

namespace catena {
namespace {

struct Cube : Function {
  explicit Cube(double wrong = 1) : factor(wrong) {}
  Arrays forward(const Arrays& x) override { return {x[0] * x[0] * x[0]}; }
  Arrays backward(const Arrays& x, const Arrays& gy) override {
    return {x[0] * x[0] * 3 * factor * gy[0]};
  }
  double factor;
};

TEST(GradientCheck, NumericalGradientsOnEveryDeviceAndLayout) {
  for (Device device : testing::devices()) {
    const Array plain = testing::random_array({2, 3}, -1, 1, Dtype::kFloat64, device);
    for (const Array& x : {plain, testing::padded(plain), testing::transposed_layout(plain),
                           testing::reversed_layout(plain),
                           testing::random_array({}, -1, 1, Dtype::kFloat64, device)}) {
      const Array before = x.copy(),
                  gy = testing::random_array(x.shape(), -1, 1, Dtype::kFloat64, device, 2);
      for (double eps : {1e-2, 1e-3, 1e-4}) {
        const Arrays g = numerical_grad([&] { return Arrays{x * x * x}; }, {x}, {gy}, eps);
        EXPECT_NO_THROW(assert_allclose(g[0], x * x * 3 * gy, 1e-3, 1e-3));
        EXPECT_EQ(g[0].device(), device);
      }
      EXPECT_EQ(testing::difference(x, before), "");  // restored
    }
  }
}

TEST(GradientCheck, NullOutputGradientsAreLeftOut) {
  const Array x = array({1.0, 2.0});
  const Arrays g = numerical_grad(
      [&] {
        return Arrays{x * 2, x * 100};
      },
      {x}, {ones({2}), Array()});
  EXPECT_NO_THROW(assert_allclose(g[0], full({2}, 2.0)));
  EXPECT_THROW(numerical_grad([&] { return Arrays{x}; }, {x}, {x}, 0), ValueError);
  EXPECT_THROW(numerical_grad([&] { return Arrays{x}; }, {x}, {}), ValueError);
}

// An array that says it is on a GPU; nothing may read it.
Array array_of_a_gpu() {
  ArrayBody* body = ArrayBody::create();
  body->device = cuda_device(0);
  return Array(body);
}

TEST(GradientCheck, CpuAndGpuArraysAreNotMixed) {
  const Array x = array({1.0, 2.0}), gpu = array_of_a_gpu();
  const auto f = [&]() -> Arrays {
    ADD_FAILURE() << "f was called";
    return {x};
  };
  for (const auto& [inputs, gradients] :
       {std::pair(Arrays{x, gpu}, Arrays{x}), std::pair(Arrays{x}, Arrays{Array(), gpu})}) {
    try {
      numerical_grad(f, inputs, gradients);
      ADD_FAILURE();
    } catch (const DeviceError& e) {
      EXPECT_STREQ(e.what(),
                   "Do not mix GPU and CPU arrays in `numerical_grad`: got arrays on cpu:0 and "
                   "cuda:0; copy them to one with to(device)");
    }
  }
  const Array g = ones({2}, {Dtype::kFloat64, cpu(1)});  // two CPU devices are no mixture
  EXPECT_NO_THROW(numerical_grad([&] { return Arrays{x * 2}; }, {x}, {g}));
}

TEST(GradientCheck, FindsWrongGradients) {
  const Array x = testing::random_array({2, 3}, 0.5, 1);
  const auto with = [](double factor) {
    return [factor](const Variables& v) { return Variables{call(Cube(factor), v[0])}; };
  };
  EXPECT_NO_THROW(check_backward(with(1), {x}));
  EXPECT_THROW(check_backward(with(1.01), {x}), ValueError);
  EXPECT_THROW(check_backward(with(-1), {x}), ValueError);
}

TEST(GradientCheck, AsksForFloat64) {
  const auto f = [](const Variables& v) { return Variables{call(Cube(1.01), v[0])}; };
  const auto text_for = [&](Dtype dtype) {
    try {
      check_backward(f, {testing::random_array({2, 3}, 0.5, 1, dtype)});
    } catch (const ValueError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(text_for(Dtype::kFloat32).find("An input is float32"), std::string::npos);
  EXPECT_NE(text_for(Dtype::kFloat32).find(".astype(dtype::float64)"), std::string::npos);
  EXPECT_EQ(text_for(Dtype::kFloat64).find("An input is"), std::string::npos);
}

TEST(GradientCheck, AssertAllclose) {
  const Array x = array({{1.0, 2.0}, {3.0, double(NAN)}});
  EXPECT_NO_THROW(assert_allclose(x, x.to(cpu(1))));
  EXPECT_NO_THROW(assert_allclose(x, x * (1 + 1e-5)));
  EXPECT_THROW(assert_allclose(x, x * 1.001), ValueError);
  EXPECT_THROW(assert_allclose(x, zeros({2, 3})), ValueError);
  EXPECT_THROW(assert_allclose(array({double(NAN)}), array({1.0})), ValueError);
  EXPECT_THROW(assert_allclose(array({double(INFINITY)}), array({1.0})), ValueError);
  EXPECT_NO_THROW(assert_allclose(array({double(INFINITY)}), array({double(INFINITY)})));
  try {
    assert_allclose(array({{1.0, 2.0}, {3.0, 4.0}}), array({{1.0, 2.5}, {7.0, 4.0}}));
    ADD_FAILURE();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("2 of 4 elements"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("(1, 0)"), std::string::npos) << e.what();
  }
}

TEST(GradientCheck, LayoutsKeepTheValues) {
  const Array x = testing::counting_array({3, 4});
  for (const Array& view :
       {testing::padded(x), testing::transposed_layout(x), testing::reversed_layout(x)}) {
    EXPECT_FALSE(view.is_contiguous());
    EXPECT_EQ(testing::difference(view, x), "");
  }
  EXPECT_NE(testing::difference(x, x.astype(Dtype::kFloat32)), "");
  EXPECT_NE(testing::difference(x, x + 1), "");
}

}  // namespace
}  // namespace catena
