#include "catena/functions/array.h"

#include "catena/autograd/function_node.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class ArrayFunctions : public OnDevice {};

// Runs a function of one input over all layouts.
void expect_gradients_of_layouts(const std::function<Variable(const Variable&)>& f, const Array& x,
                                 const char* what) {
  expect_gradients(f, x, what);
  expect_gradients(f, padded(x), what);
  expect_gradients(f, transposed_layout(x), what);
}

TEST_P(ArrayFunctions, ReductionsOverEveryFormOfAxes) {
  const Array x = draw({3, 2, 4});
  const std::vector<ReduceAxes> lists = {{}, 0, 1, -1, {0, 2}, {1, -1}, {0, 1, 2}};
  for (const ReduceAxes& axes : lists) {
    for (bool keep : {false, true}) {
      const ReduceOptions options(axes.axes, keep);
      EXPECT_EQ(testing::difference(F::sum(x, axes, keep).data(), sum(x, options)), "");
      EXPECT_EQ(testing::difference(F::mean(x, axes, keep).data(), mean(x, options)), "");
      EXPECT_EQ(testing::difference(F::max(x, axes, keep).data(), amax(x, options)), "");
      EXPECT_EQ(testing::difference(F::min(x, axes, keep).data(), amin(x, options)), "");
      expect_gradients_of_layouts([&](const Variable& v) { return F::sum(v, axes, keep); }, x,
                                  "sum");
      expect_gradients([&](const Variable& v) { return F::mean(v, axes, keep) * 2; }, x, "mean");
      expect_gradients([&](const Variable& v) { return F::max(v, axes, keep); }, x, "max");
      expect_gradients([&](const Variable& v) { return F::min(v, axes, keep); }, x, "min");
    }
  }
  expect_gradients([](const Variable& v) { return F::sum(v * v, 1); }, x, "sum of squares");
}

TEST_P(ArrayFunctions, ReductionsOfScalarsAndNothing) {
  expect_gradients([](const Variable& v) { return F::sum(v) + F::mean(v); }, draw({}), "0-d");
  const Variable x(draw({0, 3}));
  const Variable y = F::sum(x, 0);
  EXPECT_EQ(testing::difference(y.data(), zeros({3}, {Dtype::kFloat64, device()})), "");
  y.set_grad(ones_like(y.data()));
  y.backward();
  EXPECT_EQ(x.grad().shape(), (Shape{0, 3}));
}

TEST_P(ArrayFunctions, TheGradientOfSumIsExact) {
  const Variable x(draw({3, 2}));
  const Variable y = F::sum(x);
  y.set_grad(full({}, 2.5, {Dtype::kFloat64, device()}));
  y.backward();
  EXPECT_EQ(testing::difference(x.grad(), full({3, 2}, 2.5, {Dtype::kFloat64, device()})), "");
}

TEST_P(ArrayFunctions, Views) {
  const Array x = draw({4, 3, 2});
  expect_gradients_of_layouts(
      [](const Variable& v) {
        return F::reshape(v, {2, -1, 6});
      },
      x, "reshape");
  expect_gradients_of_layouts([](const Variable& v) { return F::transpose(v); }, x, "transpose");
  expect_gradients_of_layouts(
      [](const Variable& v) {
        return F::transpose(v, {-1, 0, 1});
      },
      x, "transpose axes");
  expect_gradients_of_layouts([](const Variable& v) { return F::swapaxes(v, 0, -1); }, x,
                              "swapaxes");
  expect_gradients_of_layouts([](const Variable& v) { return F::expand_dims(v, 1); }, x,
                              "expand_dims");
  expect_gradients_of_layouts([](const Variable& v) { return F::squeeze(v); }, draw({4, 1, 2, 1}),
                              "squeeze");
  expect_gradients_of_layouts([](const Variable& v) { return F::squeeze(v, 1); },
                              draw({4, 1, 2, 1}), "squeeze axis");
  expect_gradients_of_layouts([](const Variable& v) { return F::identity(v) * v; }, x, "identity");
  EXPECT_TRUE(F::reshape(Variable(x), {24}).data().shares_memory_with(x));
  EXPECT_TRUE(F::transpose(Variable(x)).data().shares_memory_with(x));
  EXPECT_EQ(testing::difference(F::transpose(x).data(), x.T()), "");
}

TEST_P(ArrayFunctions, BroadcastingAndItsInverse) {
  expect_gradients_of_layouts(
      [](const Variable& v) {
        return F::broadcast_to(v, {5, 4, 3, 2});
      },
      draw({4, 1, 2}), "broadcast_to");
  expect_gradients_of_layouts(
      [](const Variable& v) {
        return F::sum_to(v * v, {3, 1});
      },
      draw({4, 3, 2}), "sum_to");
  const Array a = draw({3, 1}), b = draw({4}, -1, 1, 1), c = draw({}, -1, 1, 2);
  const auto f = [](const Variables& v) { return F::broadcast(v); };
  expect_gradients(f, {a, b, c}, "broadcast");
  for (const Variable& y : f({Variable(a), Variable(b), Variable(c)}))
    EXPECT_EQ(y.shape(), (Shape{3, 4}));
  EXPECT_EQ(message_of<InvalidType>([&] {
              F::broadcast({Variable(a), Variable(draw({2, 2}))});
            }),
            "Invalid operation is performed in: Broadcast (Forward)\n\n"
            "Expect: each dimension has the same size or is 1\nActual: shapes: (3, 1), (2, 2)");
}

TEST_P(ArrayFunctions, ConcatAndSplit) {
  const Array a = draw({2, 3, 2}), b = draw({2, 1, 2}, -1, 1, 1), c = draw({2, 0, 2});
  const auto join = [](const Variables& v) { return Variables{F::concat(v, 1)}; };
  EXPECT_EQ(testing::difference(join({Variable(a), Variable(b)})[0].data(), concatenate({a, b}, 1)),
            "");
  expect_gradients(join, {a, padded(b), c}, "concat");
  expect_gradients([](const Variables& v) { return Variables{F::concat(v, -1)}; }, {a, a * 2},
                   "concat -1");
  expect_gradients([](const Variables& v) { return F::split_axis(v[0], 3, 1); }, {draw({2, 6, 3})},
                   "split");
  expect_gradients(
      [](const Variables& v) {
        return F::split_axis(v[0], Axes{2, 5}, 1);
      },
      {padded(draw({2, 7}))}, "split at");
}

TEST_P(ArrayFunctions, SplitPartsWithoutGradientCountAsZeros) {
  const Variable x(draw({2, 6}));
  Variables parts = F::split_axis(x, 3, 1);
  ASSERT_EQ(parts.size(), 3u);
  const Variable y = parts[1] * 2.0;
  parts.clear();
  y.set_grad(ones_like(y.data()));
  y.backward();
  const Array expected = zeros({2, 6}, {Dtype::kFloat64, device()});
  expected(Slice(), Slice(2, 4)).fill(2.0);
  EXPECT_EQ(testing::difference(x.grad(), expected), "");
}

TEST_P(ArrayFunctions, GetItem) {
  const Array x = draw({4, 3, 2});
  expect_gradients_of_layouts([](const Variable& v) { return F::get_item(v, {1}); }, x, "row");
  expect_gradients_of_layouts(
      [](const Variable& v) {
        return F::get_item(v, {Slice(none, none, -2), ellipsis, newaxis, 0});
      },
      x, "slices");
  EXPECT_EQ(testing::difference(F::get_item(x, {Slice(1, 3), 2}).data(), x(Slice(1, 3), 2)), "");
  EXPECT_THROW(F::get_item(x, {7}), IndexError);
}

TEST_P(ArrayFunctions, Where) {
  const Array condition =
      array(std::vector<int32_t>{1, 0, 0, 1, 1, 0}, {2, 3}).astype(Dtype::kBool).to(device());
  const auto f = [&](const Variables& v) { return Variables{F::where(condition, v[0], v[1])}; };
  expect_gradients(f, {draw({2, 3}), draw({2, 3}, -1, 1, 1)}, "where");
  expect_gradients(f, {draw({2, 3}), draw({3}, -1, 1, 1)}, "where broadcast");
}

TEST_P(ArrayFunctions, CastKeepsTheGradientsDtype) {
  const Variable x(draw({2, 3}, -1, 1, 0, Dtype::kFloat32));
  const Variable y = F::cast(x, Dtype::kFloat64);
  EXPECT_EQ(y.dtype(), Dtype::kFloat64);
  y.set_grad(ones_like(y.data()));
  y.backward();
  EXPECT_EQ(x.grad().dtype(), Dtype::kFloat32);
  EXPECT_TRUE(same_variable(F::cast(x, Dtype::kFloat32), x));
  EXPECT_FALSE(F::cast(x, Dtype::kInt32).creator());
}

TEST_P(ArrayFunctions, CopyMovesGradientsBack) {
  for (Device other : testing::devices()) {
    const Array gy = draw({10, 5}, -1, 1, 5).to(other);
    const Variable x(draw({10, 5}));
    const Variable y = F::copy(x, other);
    EXPECT_EQ(y.device(), other);
    EXPECT_NO_THROW(assert_allclose(y.data(), x.data(), 0, 0));
    y.set_grad(gy);
    y.backward();
    EXPECT_EQ(x.grad().device(), device());
    EXPECT_NO_THROW(assert_allclose(x.grad(), gy, 0, 0));
    expect_gradients(
        [&](const Variable& v) { return F::copy(F::exp(F::copy(v * v, other)), device()); },
        draw({2, 3}), "copy");
  }
}

TEST_P(ArrayFunctions, Messages) {
  const Array x = draw({4, 3, 2});
  EXPECT_EQ(message_of<InvalidType>([&] {
              F::reshape(x, {5, -1});
            }),
            "Invalid operation is performed in: Reshape (Forward)\n\n"
            "Expect: prod(in_types[0].shape) % known_size(=5) == 0\nActual: 4 != 0");
  EXPECT_EQ(message_of<InvalidType>([&] {
              F::reshape(x, {5, 2});
            }),
            "Invalid operation is performed in: Reshape (Forward)\n\n"
            "Expect: prod(in_types[0].shape) == prod(5, 2)\nActual: 24 != 10");
  EXPECT_EQ(message_of<InvalidType>([&] { F::sum(x, 3); }),
            "Invalid operation is performed in: Sum (Forward)\n\nExpect: axis < "
            "in_types[0].ndim\nActual: 3 >= 3");
  EXPECT_EQ(message_of<InvalidType>([&] {
              F::concat({Variable(x), Variable(draw({4, 3, 1}))}, 1);
            }),
            "Invalid operation is performed in: Concat (Forward)\n\n"
            "Expect: in_types[1].shape[2] == in_types[0].shape[2]\nActual: 1 != 2");
  EXPECT_EQ(message_of<InvalidType>([&] { F::split_axis(x, 2, 1); }),
            "Invalid operation is performed in: SplitAxis (Forward)\n\n"
            "Expect: in_types[0].shape[1] % sections == 0\nActual: 1 != 0");
  EXPECT_THROW(F::reshape(x, {-1, -1}), ValueError);
  EXPECT_THROW(F::concat({}, 0), ValueError);
  EXPECT_THROW(F::split_axis(x, Axes{2, 1}, 1), ValueError);
  EXPECT_THROW(F::sum(draw({3}, 0, 5, 0, Dtype::kInt32)), InvalidType);
}

CATENA_ON_DEVICES(ArrayFunctions);

}  // namespace
}  // namespace catena
