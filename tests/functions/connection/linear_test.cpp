// The layer Linear; linear itself has records.
#include "catena/functions/connection/linear.h"

#include "functions/functions_test_util.h"

namespace catena {
namespace {

class LinearLayers : public OnDevice {};

TEST_P(LinearLayers, ReusesTheInitialArrayWithoutACopy) {
  const Array W = draw({2, 3}, -1, 1, 0, Dtype::kFloat32);
  const F::Linear l(3, 2, {.nobias = true, .initialW = W});
  EXPECT_TRUE(l.W.data().same_body(W));
  EXPECT_FALSE(l.b.defined());
}

// Which of twenty layers it was.
TEST_P(LinearLayers, MessagesOfLinearNameTheLayer) {
  struct Block : FunctionSet {
    F::Linear l1{3, 3}, l2{3, 2, {.nobias = true}};
    CATENA_FUNCTIONS(l1, l2)
  };
  struct Net : FunctionSet {
    Block block;
    std::vector<F::Linear> tail{F::Linear(2, 2), F::Linear(2, 2)};
    CATENA_FUNCTIONS(block, tail)
  } net;
  net.to(device());
  const auto text_of = [&](const F::Linear& layer, const Array& x) {
    return error_of<InvalidType>([&] { layer(x); });
  };
  const std::string text = text_of(net.block.l2, draw({4, 3}));
  EXPECT_EQ(text.find("Invalid operation is performed in: Linear 'block/l2' (Forward)\n\nExpect: "
                      "x.dtype == float32\nActual: float64 != float32\n"),
            0u)
      << text;
  expect_contains(text, {".astype(dtype::float32)", "config().default_dtype = dtype::float32"});
  expect_contains(text_of(net.tail[1], draw({4, 3}, -1, 1, 0, Dtype::kFloat32)),
                  {"Linear 'tail/1'"});
  const std::string integers = text_of(net.block.l1, draw({4, 3}, 0, 9, 0, Dtype::kInt64));
  expect_contains(integers, {".astype(dtype::float32)."});
  expect_contains(error_of<DeviceError>([&] {
                    net.block.l1(ones({4, 3}, {dtype::float32, "cpu:7"}));
                  }),
                  {"Linear 'block/l1': arrays on different devices"});
}

TEST_P(LinearLayers, KeepsLeadingAxes) {
  const DeviceScope scope(device());
  const F::Linear l(4, 3, {.dtype = Dtype::kFloat64}),
      bare(4, 3, {.nobias = true, .initialW = l.W.data()});
  const Array x = draw({2, 5, 4}), gy = draw({2, 5, 3}, -1, 1, 1);
  const Variable v(x), rows(x.reshape({10, 4}));
  const auto gradient = [&](const Variable& y) {
    for (const Parameter& p : {Parameter(l.W), Parameter(l.b)}) p.zero_grad();
    y.set_grad(gy.reshape(y.shape()));
    y.backward();
    return l.W.grad().copy();
  };
  const Variable y = l(v), flat = l(rows);
  EXPECT_EQ(y.shape(), (Shape{2, 5, 3}));
  EXPECT_EQ(testing::difference(y.data().reshape({10, 3}), flat.data()), "");
  EXPECT_EQ(testing::difference(gradient(y), gradient(flat)), "");
  EXPECT_EQ(testing::difference(v.grad().reshape({10, 4}), rows.grad()), "");
  EXPECT_EQ(l(draw({4})).shape(), (Shape{3}));
  EXPECT_EQ(bare(draw({1, 0, 4})).shape(), (Shape{1, 0, 3}));
  EXPECT_EQ(testing::difference(l.relu(v).data(), maximum(l(v).data(), 0.0)), "");
  EXPECT_EQ(testing::difference(bare.relu(v).data(), maximum(bare(v).data(), 0.0)), "");
}

// Also where the last axis alone would fit.
TEST_P(LinearLayers, FlattensWhereItIsAskedTo) {
  const DeviceScope scope(device());
  const F::Linear flat(6, 3, {.dtype = Dtype::kFloat64, .flatten = true}),
      rows(6, 3, {.initialW = flat.W.data(), .dtype = Dtype::kFloat64});
  for (const Shape& shape : {Shape{4, 6}, Shape{4, 2, 3}, Shape{4, 6, 1}, Shape{4, 1, 6},
                             Shape{0, 3, 2}, Shape{1, 1, 2, 3}}) {
    SCOPED_TRACE(shape);
    const Variable x(draw(shape)), same(x.data().reshape({shape[0], 6}));
    const Variable y = flat(x), expected = rows(same);
    EXPECT_EQ(y.shape(), (Shape{shape[0], 3}));
    EXPECT_EQ(testing::difference(y.data(), expected.data()), "");
    EXPECT_EQ(testing::difference(flat.relu(x).data(), maximum(expected.data(), 0.0)), "");
    F::sum(y * y).backward();
    F::sum(expected * expected).backward();
    EXPECT_EQ(testing::difference(x.grad().reshape(same.shape()), same.grad()), "");
  }
  const F::Linear copy = flat;
  EXPECT_EQ(copy(draw({4, 2, 3})).shape(), (Shape{4, 3}));
  expect_contains(
      error_of<InvalidType>([&] {
        flat(draw({4, 2, 6}));
      }),
      {"Expect: prod(x.shape[1:]) == W.shape[1]\nActual: 12 != 6\n",
       "The layer takes (n, 6), n samples of 6 numbers each; the input has shape (4, 2, "
       "6)."});
  expect_contains(error_of<InvalidType>([&] { flat(draw({6})); }),
                  {"Expect: x.ndim >= 2\nActual: 1 < 2\n", "one sample is x.reshape({1, -1})."});
  expect_contains(error_of<InvalidType>([&] {
                    rows(draw({4, 2, 3}));
                  }),
                  {"LinearOptions{.flatten = true}", "x.reshape({4, 6})"});
  expect_gradients([&](const Variable& x) { return flat(x); }, draw({2, 3, 2}));
  expect_gradients([&](const Variable& x) { return rows(x); }, draw({2, 3, 6}));
}

TEST(LinearLayer, MovedFromIsRefused) {
  F::Linear a(4, 3);
  const F::Linear b = std::move(a);
  const Array x = ones({1, 4}, dtype::float32);
  EXPECT_EQ(b(x).shape(), (Shape{1, 3}));
  expect_contains(error_of<ValueError>([&] { a(x); }), {"Linear: this layer has no weights"});
  expect_contains(error_of<ValueError>([&] { a.in_size(); }), {"moved from"});
  EXPECT_THROW(a.out_size(), ValueError);
  EXPECT_THROW(a.W.data(), ValueError);
  EXPECT_EQ(a.parameters().size(), 0u);
  a.to("cpu:1");
  a.zero_grads();
  const F::Linear no_bias(3, 4, {.nobias = true});
  expect_contains(error_of<ValueError>([&] { no_bias.b.data(); }), {"Parameter::data"});
}

TEST_P(LinearLayers, RefusesSizesAndStartValuesThatMakeNoSense) {
  EXPECT_THROW(F::Linear(0, 2), ValueError);
  EXPECT_THROW(F::Linear(3, 2, {.initialW = draw({3, 2})}), ShapeError);
  EXPECT_THROW(F::Linear(3, 2, {.dtype = Dtype::kInt32}), DtypeError);
  EXPECT_THROW(F::Linear(3, 2, {.nobias = true, .initial_bias = draw({2})}), ValueError);
}

CATENA_ON_DEVICES(LinearLayers);

}  // namespace
}  // namespace catena
