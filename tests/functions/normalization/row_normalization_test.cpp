// The layers of layer, root-mean-square, group and instance normalization, and what their records
// and that of local response normalization cannot say: memory order, large means, capture.
#include "catena/array/manipulation.h"
#include "catena/core/graph.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/normalization/group_normalization.h"
#include "catena/functions/normalization/layer_normalization.h"
#include "catena/functions/normalization/local_response_normalization.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

const Dtype k64 = Dtype::kFloat64;

std::string difference(const Variable& a, const Variable& b) {
  return testing::difference(a.data(), b.data());
}
// A normalization of x by gamma and beta.
using Normalized = std::function<Variable(const Variable&, const Variable&, const Variable&)>;

class RowNormalization : public OnDevice {
 protected:
  Array gamma(const Shape& size) const { return draw(size, 0.5, 2, 1); }
  Array beta(const Shape& size) const { return draw(size, -1, 1, 2); }

  // In float32 two layers of f and their gradients, recorded or not, are those of float64. The
  // gradients of gamma and beta add up over the layers.
  void expect_gradients_of_float64(const Normalized& f, const Shape& shape, int64_t channels,
                                   bool last = false) const {
    SCOPED_TRACE(message(shape, last ? ", channels last" : ""));
    const auto batch = [&](uint64_t from, double low, double high) {
      const Array values = draw(shape, low, high, from, Dtype::kFloat32);
      return last ? F::channels_last(values) : values;
    };
    const Array narrow = batch(1, -2, 3), gy = batch(4, -1, 1),
                g32 = gamma({channels}).astype(Dtype::kFloat32),
                b32 = beta({channels}).astype(Dtype::kFloat32);
    const Variable x(narrow), g(g32), b(b32), wide_x(narrow.astype(k64)), wide_g(g32.astype(k64)),
        wide_b(b32.astype(k64));
    const Variable y = f(f(x, g, b), g, b), expected = f(f(wide_x, wide_g, wide_b), wide_g, wide_b);
    EXPECT_EQ(testing::difference(y.data().astype(k64), expected.data(), 1e-5, 1e-5), "");
    for (const bool recorded : {false, true}) {
      y.set_grad(gy);
      y.backward({.create_graph = recorded});
      expected.set_grad(gy.astype(k64));
      expected.backward({.create_graph = recorded});
      EXPECT_EQ(testing::difference(x.grad().astype(k64), wide_x.grad(), 1e-5, 1e-5), "");
      EXPECT_EQ(testing::difference(g.grad().astype(k64), wide_g.grad(), 1e-5, 1e-4), "");
      EXPECT_EQ(testing::difference(b.grad().astype(k64), wide_b.grad(), 1e-5, 1e-4), "");
    }
  }

  // A step captured as a graph gives the results of the eager one for other values of x, too.
  template <class Step>
  void expect_replays(const Variable& x, const Step& step) const {
    step();
    std::vector<Array> replayed;
    cuda::Graph graph = cuda::Graph::capture(device(), [&] { replayed = step(); });
    for (uint64_t replay = 2; replay < 4; ++replay) {
      x.data().assign(draw(x.shape(), -2, 3, replay, Dtype::kFloat32));
      graph.launch();
      const std::vector<Array> eager = step();
      for (size_t i = 0; i < eager.size(); ++i)
        EXPECT_EQ(testing::difference(replayed[i], eager[i]), "") << i;
    }
  }
};

TEST_P(RowNormalization, LayersAreTheFunctionsOfTheirParameters) {
  const DeviceScope scope(device());
  const Array g = gamma({4}), b = beta({4}), x = draw({3, 4, 5}, -2, 3), rows = draw({3, 4});
  const F::LayerNormalization layer(
      4, {.eps = 0.1, .dtype = k64, .initial_gamma = g, .initial_beta = b});
  EXPECT_EQ(difference(layer(rows), F::layer_normalization(rows, g, b, 0.1)), "");
  const F::RMSNormalization rms(4, {.eps = 0.1, .dtype = k64, .initial_gamma = g});
  EXPECT_EQ(difference(rms(rows), F::rms_normalization(rows, g, 0.1)), "");
  const F::GroupNormalizationOptions options{
      .eps = 0.1, .dtype = k64, .initial_gamma = g, .initial_beta = b};
  const F::GroupNormalization group(2, 4, options);
  EXPECT_EQ(difference(group(x), F::group_normalization(x, 2, g, b, 0.1)), "");
  const F::InstanceNormalization instance(4, options);
  EXPECT_EQ(difference(instance(x), F::instance_normalization(x, g, b, 0.1)), "");
  EXPECT_EQ(difference(instance(x), F::group_normalization(x, 4, g, b, 0.1)), "");
  EXPECT_EQ(group.groups(), 2);
  EXPECT_EQ(instance.groups(), 4);
  EXPECT_EQ(layer.size(), (Shape{4}));
}

TEST_P(RowNormalization, LayersWithoutParametersNormalizeOnly) {
  const DeviceScope scope(device());
  const Array x = draw({2, 4, 3}, -2, 3), one = ones({3}, {k64, device()}),
              four = ones({4}, {k64, device()});
  const Array zero = zeros_like(one), none = zeros_like(four);
  EXPECT_EQ(difference(F::LayerNormalization(3, {.use_gamma = false, .use_beta = false})(x),
                       F::layer_normalization(x, one, zero)),
            "");
  EXPECT_EQ(
      difference(F::RMSNormalization(3, {.use_gamma = false})(x), F::rms_normalization(x, one)),
      "");
  const F::GroupNormalizationOptions plain{.use_gamma = false, .use_beta = false};
  EXPECT_EQ(
      difference(F::GroupNormalization(2, 4, plain)(x), F::group_normalization(x, 2, four, none)),
      "");
  expect_gradients([&](const Variable& v) { return F::GroupNormalization(2, 4, plain)(v); }, x,
                   "group");
  expect_gradients(
      [&](const Variable& v) {
        return F::LayerNormalization(3, {.use_gamma = false, .use_beta = false})(v);
      },
      x, "layer");
}

TEST_P(RowNormalization, LayersRefuse) {
  const DeviceScope scope(device());
  EXPECT_EQ(error_of<ValueError>([] { F::LayerNormalization(0); }),
            "LayerNormalization: expected a size of at least 1, got (0,)");
  const Array one = draw({});
  EXPECT_EQ(error_of<ShapeError>([&] {
              F::layer_normalization(draw({2, 3}), one, one);
            }),
            "LayerNormalization: gamma is one number, of shape (), expected is the shape of the "
            "last axes of x, whose shape is (2, 3)");
  EXPECT_THROW(F::rms_normalization(draw({2, 3}), one), ShapeError);
  EXPECT_EQ(error_of<ValueError>([] { F::RMSNormalization(3, {.eps = -1}); }),
            "RMSNormalization: expected an eps of at least 0, got -1");
  EXPECT_EQ(error_of<DtypeError>([] { F::LayerNormalization(3, {.dtype = Dtype::kInt32}); }),
            "LayerNormalization: expected a floating dtype, got int32");
  EXPECT_EQ(error_of<ShapeError>([&] { F::GroupNormalization(2, 4, {.initial_beta = draw({3})}); }),
            "GroupNormalization: initial_beta has shape (3,), expected size = (4,)");
  EXPECT_EQ(error_of<ValueError>([] { F::GroupNormalization(3, 4); }),
            "GroupNormalization: 4 channels cannot be split into 3 equal groups; use a number of "
            "groups that divides the channels");
  F::InstanceNormalization layer(3, {.dtype = k64});
  const F::InstanceNormalization taken = std::move(layer);
  EXPECT_EQ(error_of<ValueError>([&] {
              layer(draw({2, 3, 4}));
            }),
            "InstanceNormalization: this layer has no parameters; it was moved from");
  EXPECT_NO_THROW(taken(draw({2, 3, 4})));
  expect_contains(error_of<InvalidType>([&] {
                    F::LayerNormalization(3)(draw({2, 3}));
                  }),
                  {"The input is float64, the layer float32"});
}

// Statistics and parameters of 16-bit inputs are float32; parameters may have the input's dtype.
TEST_P(RowNormalization, SixteenBitsKeepFloat32Parameters) {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
    const Array x = draw({4, 100}, -2, 3, 0, dtype), wide = x.astype(k64);
    const Array g = gamma({100}).astype(Dtype::kFloat32), b = beta({100}).astype(Dtype::kFloat32);
    const Variable of_float(g), of_own(g.astype(dtype));
    const Variable y = F::layer_normalization(x, of_float, b);
    EXPECT_EQ(y.dtype(), dtype);
    const Array expected =
        F::layer_normalization(wide, g.astype(k64), b.astype(k64)).data().astype(dtype);
    const double half = dtype == Dtype::kFloat16 ? 0x1p-10 : 0x1p-7;
    EXPECT_EQ(testing::difference(y.data(), expected, half, half), "");
    F::sum(y).backward();
    EXPECT_EQ(of_float.grad().dtype(), Dtype::kFloat32);
    F::sum(F::layer_normalization(x, of_own, b.astype(dtype))).backward();
    EXPECT_EQ(of_own.grad().dtype(), dtype);
  }
}

// Rows of packs and others, and images.
TEST_P(RowNormalization, GradientsOfSixteenBitsAreRoundedOnce) {
  const auto check = [&](const char* what, const Shape& shape, int64_t channels, auto f) {
    const Array x = draw(shape, -2, 3, 0, Dtype::kBFloat16),
                g = gamma({channels}).astype(Dtype::kBFloat16),
                b = beta({channels}).astype(Dtype::kBFloat16);
    const Variable narrow_g(g), narrow_b(b), wide_g(g.astype(Dtype::kFloat32)),
        wide_b(b.astype(Dtype::kFloat32));
    const Array gy = draw(shape, -1, 1.5, 1, Dtype::kBFloat16);
    const auto pass = [&](const Variable& g, const Variable& b) {
      const Variable y = f(x, g, b);
      y.set_grad(gy);
      y.backward();
      return y.data();
    };
    const Array y = pass(narrow_g, narrow_b);
    EXPECT_EQ(testing::difference(y, pass(wide_g, wide_b), 0, 0), "") << what;
    const Array once_g = wide_g.grad().astype(Dtype::kBFloat16),
                once_b = wide_b.grad().astype(Dtype::kBFloat16);
    EXPECT_EQ(testing::difference(narrow_g.grad(), once_g, 0, 0), "") << what;
    EXPECT_EQ(testing::difference(narrow_b.grad(), once_b, 0, 0), "") << what;
  };
  const auto layer = [](const Array& x, const Variable& g, const Variable& b) {
    return F::layer_normalization(x, g, b);
  };
  const auto groups = [](const Array& x, const Variable& g, const Variable& b) {
    return F::group_normalization(x, 4, g, b);
  };
  const auto instance = [](const Array& x, const Variable& g, const Variable& b) {
    return F::instance_normalization(x, g, b);
  };
  const DeviceScope scope(device());
  check("packs", {70, 768}, 768, layer);
  check("no packs", {9, 101}, 101, layer);
  check("long", {3, 20'000}, 20'000, layer);
  check("groups", {3, 16, 8, 8}, 16, groups);
  check("odd groups", {2, 20, 7, 5}, 20, groups);
  check("few large groups", {1, 8, 128, 128}, 8, groups);
  check("channels", {2, 3, 32, 32}, 3, instance);
}

// In the memory of an optimizer a second pass adds to the gradients of the first.
TEST_P(RowNormalization, GradientsOfSixteenBitsAreAccumulated) {
  const DeviceScope scope(device());
  F::LayerNormalization layer(96, {.dtype = Dtype::kBFloat16});
  optimizers::SGD optimizer(0.1);
  optimizer.setup(layer);
  optimizer.zero_grads();
  const Array x = draw({5, 96}, -2, 3, 0, Dtype::kBFloat16),
              gy = draw({5, 96}, -1, 1.5, 1, Dtype::kBFloat16);
  const auto pass = [&] {
    const Variable y = layer(x);
    y.set_grad(gy);
    y.backward();
  };
  pass();
  const Array gamma = layer.gamma.grad().copy(), beta = layer.beta.grad().copy();
  pass();
  EXPECT_EQ(testing::difference(layer.gamma.grad(), gamma * 2.0, 0, 0x1p-7), "");
  EXPECT_EQ(testing::difference(layer.beta.grad(), beta * 2.0, 0, 0x1p-7), "");
}

// Recorded gradients, too, keep the digits of a deviation that is far below the mean.
TEST_P(RowNormalization, LargeMeansSpoilNothing) {
  const Array small = draw({3, 64}, -1, 1, 3), far = small + 4096;
  const Array g = gamma({64}).astype(Dtype::kFloat32), b = beta({64}).astype(Dtype::kFloat32),
              gy = draw({3, 64}, -1, 1, 4, Dtype::kFloat32);
  const Array rounded = far.astype(Dtype::kFloat32);  // to multiples of 2^-11
  const Variable x(rounded), near((rounded - 4096).astype(k64));
  const Variable y = F::layer_normalization(x, g, b),
                 expected = F::layer_normalization(near, g.astype(k64), b.astype(k64));
  EXPECT_EQ(testing::difference(y.data().astype(k64), expected.data(), 1e-5, 1e-5), "");
  for (const bool recorded : {false, true}) {
    y.set_grad(gy);
    y.backward({.create_graph = recorded});
    expected.set_grad(gy.astype(k64));
    expected.backward({.create_graph = recorded});
    EXPECT_EQ(testing::difference(x.grad().astype(k64), near.grad(), 1e-5, 1e-5), "") << recorded;
  }
}

TEST_P(RowNormalization, IsCaptured) {
  CATENA_NEEDS_GPU();
  if (!device().is_cuda()) GTEST_SKIP() << "graphs are of GPUs";
  const Array values = draw({4, 8, 6}, -2, 3, 1, Dtype::kFloat32);
  const Variable x(values), g(gamma({8}).astype(Dtype::kFloat32)),
      b(beta({8}).astype(Dtype::kFloat32)), w(gamma({6}).astype(Dtype::kFloat32));
  const auto step = [&] {
    F::sum(F::square(F::local_response_normalization(
               F::rms_normalization(F::group_normalization(x, 2, g, b), w), 5, 1, 0.2)))
        .backward();
    return std::vector<Array>{x.grad(), g.grad(), b.grad(), w.grad()};
  };
  expect_replays(x, step);
}

// Rows that GPUs keep in the registers of a block.
TEST_P(RowNormalization, RowsThatFitABlockHaveTheirGradients) {
  const Normalized layer = [](const auto& x, const auto& g, const auto& b) {
    return F::layer_normalization(x, g, b);
  };
  const Normalized instance = [](const auto& x, const auto& g, const auto& b) {
    return F::instance_normalization(x, g, b);
  };
  const DeviceScope scope(device());
  expect_gradients_of_float64(layer, {3, 4096}, 4096);
  expect_gradients_of_float64(layer, {2, 8192}, 8192);
  expect_gradients_of_float64(instance, {2, 3, 32, 32}, 3);
  expect_gradients_of_float64(instance, {2, 3, 8192}, 3);
}

// GPUs keep groups of images in shared memory, sum them in lines, or take them in strips.
TEST_P(RowNormalization, GroupsOfImagesHaveTheirGradients) {
  const auto groups = [](int64_t count) -> Normalized {
    return [count](const auto& x, const auto& g, const auto& b) {
      return F::group_normalization(x, count, g, b);
    };
  };
  const DeviceScope scope(device());
  for (const bool last : {false, true}) {
    expect_gradients_of_float64(groups(4), {3, 16, 28, 28}, 16, last);  // several channels a team
    expect_gradients_of_float64(groups(1), {2, 6, 7, 7}, 6, last);      // runs that fill no packs
    expect_gradients_of_float64(groups(2), {2, 4, 90, 100}, 4, last);
    expect_gradients_of_float64(groups(1), {1, 3, 300, 300}, 3, last);  // long rows
    expect_gradients_of_float64(groups(2), {150, 8, 16, 4}, 8, last);   // many rows
    expect_gradients_of_float64(groups(2), {2, 96, 20, 20}, 96, last);  // wide groups
  }
}

TEST_P(RowNormalization, RowsThatFitABlockAreCaptured) {
  CATENA_NEEDS_GPU();
  if (!device().is_cuda()) GTEST_SKIP() << "graphs are of GPUs";
  const Variable x(draw({4, 8, 128}, -2, 3, 1, Dtype::kFloat32)),
      g(gamma({8}).astype(Dtype::kFloat32)), b(beta({8}).astype(Dtype::kFloat32)),
      w(gamma({128}).astype(Dtype::kFloat32)), v(beta({128}).astype(Dtype::kFloat32));
  const auto step = [&] {
    const Variable y = F::group_normalization(F::instance_normalization(x, g, b), 2, g, b);
    F::sum(F::square(F::layer_normalization(y, w, v))).backward();
    return std::vector<Array>{x.grad(), g.grad(), b.grad(), w.grad(), v.grad()};
  };
  expect_replays(x, step);
}

CATENA_ON_DEVICES(RowNormalization);

}  // namespace
}  // namespace catena
