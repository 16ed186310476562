// Pooling functions as layers, in networks, in both memory orders, and on GPUs.
#include "catena/autograd/backward.h"
#include "catena/core/graph.h"
#include "catena/functions/array/resize_images.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/pooling.h"
#include "catena/testing_markers.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using Call = std::function<Variable(const Variable&)>;
struct Named {
  const char* name;
  Call call;
};
// One of each kernel path.
std::vector<Named> calls() {
  const F::MaxPooling2DOptions largest{.stride = F::Extent2D(2), .pad = 1};
  const F::AveragePooling2DOptions overlapping{.stride = F::Extent2D(2), .pad = 1};
  return {
      {"max 3/2", [=](const Variable& x) { return F::max_pooling_2d(x, 3, largest); }},
      {"average 3/2", [=](const Variable& x) { return F::average_pooling_2d(x, 3, overlapping); }},
      {"average 2", [](const Variable& x) { return F::average_pooling_2d(x, 2); }},
      {"average 5/3",
       [](const Variable& x) {
         return F::average_pooling_2d(x, 5, {.stride = F::Extent2D(3), .pad = 2});
       }},
      {"global", [](const Variable& x) { return F::global_average_pooling_2d(x); }},
      {"adaptive",
       [](const Variable& x) {
         return F::adaptive_average_pooling_2d(x, {4, 3});
       }},
      {"adaptive max",
       [](const Variable& x) {
         return F::adaptive_max_pooling_2d(x, {5, 4});
       }},
      {"adaptive max, uneven rows",
       [](const Variable& x) {
         return F::adaptive_max_pooling_2d(x, {3, 6});
       }},
      {"unpooling",
       [](const Variable& x) {
         return F::unpooling_2d(x, 3, {.stride = F::Extent2D(2), .pad = 1});
       }},
      {"bilinear",
       [](const Variable& x) {
         return F::resize_images(x, {13, 17});
       }},
      {"centered",
       [](const Variable& x) {
         return F::resize_images(x, {5, 23}, {.align_corners = false});
       }},
      {"nearest", [](const Variable& x) { return F::upsampling_nearest(x, 2); }}};
}

class PoolingFunctions : public OnDevice {};

TEST_P(PoolingFunctions, KeepChannelsLast) {
  for (const auto& [name, call] : calls()) {
    SCOPED_TRACE(name);
    const Array images = draw({2, 8, 7, 6}, -1, 1);
    const Variable x(images), last(F::channels_last(images));
    const Variable y = call(x), y_last = call(last);
    EXPECT_TRUE(y.data().is_contiguous());
    EXPECT_EQ(y_last.data().shape(), y.data().shape());
    // An image of one element has both orders.
    if (y.shape()[2] > 1) {
      EXPECT_EQ(y_last.data().order(), last.data().order());
    }
    EXPECT_EQ(testing::difference(y.data(), y_last.data().contiguous(), 1e-12), "");
    const Array gy = draw(y.shape(), -1, 1, 2);
    y.set_grad(gy);
    y.backward();
    y_last.set_grad(F::channels_last(gy));
    y_last.backward();
    EXPECT_EQ(x.grad().order(), images.order());
    EXPECT_EQ(last.grad().order(), last.data().order());
    EXPECT_EQ(testing::difference(x.grad(), last.grad().contiguous(), 1e-12), "");
  }
}

// The gradient needs no array of the forward call, which may be written over: what max pooling
// keeps are places.
TEST_P(PoolingFunctions, KeepNothing) {
  for (const auto& [name, call] : calls()) {
    SCOPED_TRACE(name);
    const Variable x(draw({2, 3, 8, 6}, -1, 1));
    const auto gradient_of = [&](const Variable& y) {
      y.set_grad(ones_like(y.data()));
      x.set_grad(Array());
      y.backward();
      return x.grad();
    };
    const Array expected = gradient_of(call(x));
    const Variable y = call(x);
    x.data().fill(0);
    EXPECT_EQ(testing::difference(gradient_of(y), expected), "");
  }
}

struct Network : FunctionSet {
  F::Convolution2D conv{1, 2, 3};
  F::MaxPooling2D pool{2};
  F::AveragePooling2D mean{{2, 1}, {.stride = F::Extent2D(1)}};
  F::SpatialPyramidPooling2D pyramid{{2, 3, 4}, 2};
  CATENA_FUNCTIONS(conv, pool, mean, pyramid)
  Variable operator()(const Variable& x) { return pyramid(mean(pool(conv(x)))); }
};

TEST(PoolingLayers, AreMembersWithoutParameters) {
  Network net;
  EXPECT_EQ(net.parameter_names(), (std::vector<std::string>{"conv/W", "conv/b"}));
  const Variable x(random_array({2, 1, 10, 10}, -1, 1, Dtype::kFloat32));
  const Variable y = net(x);
  EXPECT_EQ(y.shape(), (Shape{2, 10, 1, 1}));
  const Variable step =
      F::average_pooling_2d(F::max_pooling_2d(net.conv(x), 2), {2, 1}, {.stride = F::Extent2D(1)});
  EXPECT_EQ(testing::difference(y.data(), F::spatial_pyramid_pooling_2d(step, 2).data()), "");
  EXPECT_EQ(
      testing::difference(y.data(), F::spatial_pyramid_pooling_2d<F::MaxPooling2D>(step, 2).data()),
      "");
  Network copy = net;
  EXPECT_EQ(testing::difference(copy(x).data(), y.data()), "");
  EXPECT_EQ(copy.pool.ksize().height, 2);
  EXPECT_EQ(copy.mean.options().stride->width, 1);
}

TEST(PoolingLayers, RefuseWrongOptionsAndShapes) {
  EXPECT_THROW(F::MaxPooling2D(0), ValueError);
  EXPECT_THROW(F::AveragePooling2D(2, {.pad = -1}), ValueError);
  EXPECT_THROW(F::SpatialPyramidPooling2D({1, 4, 4}, 0), ValueError);
  EXPECT_EQ(
      error_of<ShapeError>([] {
        F::SpatialPyramidPooling2D({1, 3, 3}, 3);
      }),
      "SpatialPyramidPooling2D: level 2 has 4 x 4 parts of (1, 1), some of which would see no "
      "element of an image of (3, 3); use larger images or a lower pyramid");
  const F::SpatialPyramidPooling2D pyramid({2, 4, 4}, 2);
  EXPECT_THROW(pyramid(random_array({1, 3, 4, 4}, -1, 1)), InvalidType);
  EXPECT_EQ(error_of<InvalidType>([&] {
              pyramid(random_array({1, 2, 5, 4}, -1, 1));
            }),
            "Invalid operation is performed in: SpatialPyramidPooling2D (Forward)\n\nExpect: "
            "x.shape[2] == 4\nActual: 5 != 4\nInputs: x float64 (1, 2, 5, 4)\nThis layer is for "
            "images (n, 2, 4, 4); spatial_pyramid_pooling_2d takes any.");
}

TEST(PoolingOnGpu, IsCaptured) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  for (const auto& [name, call] : calls()) {
    SCOPED_TRACE(name);
    const auto images = [&](uint64_t seed) {
      return F::channels_last(random_array({3, 16, 21, 19}, -1, 1, Dtype::kBFloat16, gpu, seed));
    };
    const Variable x(images(1));
    const Array gy = random_array(call(x).shape(), -1, 1, Dtype::kBFloat16, gpu, 2);
    Array y, gx;
    const auto step = [&, &f = call] {
      const Variable result = f(x);
      x.set_grad(Array());
      result.set_grad(gy);
      result.backward();
      y = result.data(), gx = x.grad();
    };
    cuda::Graph graph = cuda::Graph::capture(gpu, step);
    const Array captured_y = y, captured_gx = gx;
    x.data().assign(images(3));
    graph.launch();
    const Array replayed_y = captured_y.copy(), replayed_gx = captured_gx.copy();
    step();
    EXPECT_EQ(testing::difference(replayed_y, y), "");
    EXPECT_EQ(testing::difference(replayed_gx, gx), "");
  }
}

// Sums are made in the same order on both devices. Sums of whole images are reductions, which are
// not.
TEST(PoolingOnGpu, HasTheBitsOfTheCpu) {
  CATENA_NEEDS_GPU();
  for (const auto& [name, call] : calls()) {
    if (std::string(name) == "global") continue;
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBFloat16})
      for (const bool last : {false, true})
        for (const int64_t channels : {24, 5}) {
          const auto run = [&, &f = call](Device device) {
            const Array images = random_array({2, channels, 37, 41}, -1, 1, dtype, cpu(), 1);
            const Array there = images.to(device);
            const Variable x(last ? F::channels_last(there) : there);
            const Variable y = f(x);
            y.set_grad(random_array(y.shape(), -1, 1, dtype, cpu(), 2).to(device));
            y.backward();
            return Arrays{y.data().to_cpu(), x.grad().to_cpu()};
          };
          const Arrays a = run(cpu()), b = run(cuda_device(0));
          for (size_t i = 0; i < a.size(); ++i)
            EXPECT_EQ(testing::difference(a[i], b[i]), "")
                << name << ' ' << dtype << ' ' << channels << (last ? " channels last" : "");
        }
  }
}

CATENA_ON_DEVICES(PoolingFunctions);

}  // namespace
}  // namespace catena
