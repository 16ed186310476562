// The layer EmbedID, ids that have no vector, sums of many gradients and where they are written;
// embed_id is in the function oracle and has records.
#include "catena/functions/connection/embed_id.h"

#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/core/graph.h"
#include "catena/core/memory_pool.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing_gtest.h"
#include "deterministic_scope.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Embedding : public OnDevice {
 protected:
  Array ids(const std::vector<int64_t>& values, Dtype dtype = Dtype::kInt32) const {
    return array(values).astype(dtype).to(device());
  }
  // 5 ids, vectors of 3.
  F::EmbedID layer(const F::EmbedIDOptions& options = {}) const {
    const DeviceScope scope(device());
    F::EmbedIDOptions given = options;
    given.initialW = draw({5, 3}, -1, 1, 4, options.dtype.value_or(Dtype::kFloat64));
    return F::EmbedID(5, 3, given);
  }
  // The gradient of W where that of the result is `gy`.
  static Array gradient(const Array& x, const Array& W, const Array& gy,
                        std::optional<int64_t> ignored = {}) {
    const Variable table(W);
    const Variable y = F::embed_id(x, table, ignored);
    y.set_grad(gy);
    y.backward();
    return table.grad();
  }
};

TEST_P(Embedding, TheLayerIsTheFunctionOfItsTable) {
  const F::EmbedID embed = layer(), padded = layer({.ignore_label = 2});
  const Array x = ids({4, 2, 0, 2});
  EXPECT_EQ(testing::difference(embed(x).data(), F::embed_id(x, embed.W).data()), "");
  EXPECT_EQ(testing::difference(padded(x).data(), F::embed_id(x, embed.W, 2).data()), "");
  EXPECT_EQ(embed.in_size(), 5);
  EXPECT_EQ(embed.out_size(), 3);
  EXPECT_EQ(padded.ignore_label(), 2);
  EXPECT_EQ(embed.ignore_label(), std::nullopt);
  const F::EmbedID copy = padded;
  EXPECT_EQ(copy.ignore_label(), 2);
  EXPECT_FALSE(copy.W == padded.W);
}

TEST_P(Embedding, RefusesSizesAndStartValuesThatMakeNoSense) {
  EXPECT_EQ(error_of<ValueError>([] { F::EmbedID(0, 2); }),
            "EmbedID: expected sizes of at least 1, got 0 and 2");
  EXPECT_THROW(F::EmbedID(3, 2, {.initialW = draw({2, 3})}), ShapeError);
  EXPECT_THROW(F::EmbedID(3, 2, {.dtype = Dtype::kInt32}), DtypeError);
  F::EmbedID a = layer();
  const F::EmbedID b = std::move(a);
  EXPECT_EQ(error_of<ValueError>([&] { a(ids({1})); }),
            "EmbedID: this layer has no table; it was moved from");
  const Array elsewhere = array(std::vector<int32_t>{1}, {1}, cpu(7));
  expect_contains(error_of<DeviceError>([&] { b(elsewhere); }), {"EmbedID: arrays on different"});
}

TEST_P(Embedding, TakesEveryIntegerDtypeInEveryLayout) {
  const Array W = draw({5, 3}), rows = ids({4, 0, 2, 2, 1, 0}).reshape({2, 3});
  const Array expected = F::embed_id(rows, W).data();
  EXPECT_EQ(expected.shape(), (Shape{2, 3, 3}));
  for (const Dtype dtype : {Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kInt64,
                            Dtype::kUInt8, Dtype::kUInt16, Dtype::kUInt32, Dtype::kUInt64}) {
    const Array x = rows.astype(dtype);
    for (const Array& view : {x, padded(x), transposed_layout(x), reversed_layout(x)})
      EXPECT_EQ(testing::difference(F::embed_id(view, W).data(), expected), "") << dtype;
  }
  EXPECT_THROW(F::embed_id(rows.astype(Dtype::kBool), W), InvalidType);
}

// A row of NaN on a GPU, which does not look.
TEST_P(Embedding, IdsOutOfRange) {
  const Array W = draw({5, 3});
  const auto expect_refused = [&](const Array& x, const std::string& text,
                                  std::optional<int64_t> ignored = {}) {
    EXPECT_EQ(error_of<ValueError>([&] { F::check_ids(x, 5, ignored); }), text);
    if (device().is_cpu()) {
      EXPECT_EQ(error_of<ValueError>([&] { F::embed_id(x, W, ignored); }), text);
      return;
    }
    const std::vector<double> y = F::embed_id(x, W, ignored).data().to_vector<double>();
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 3 == 1) << text;
    const Array g = gradient(x, W, ones({3, 3}, {Dtype::kFloat64, device()}), ignored);
    EXPECT_EQ(
        testing::difference(g, gradient(ids({0, 4}), W, ones({2, 3}, {Dtype::kFloat64, device()}))),
        "");
  };
  expect_refused(ids({0, 5, 4}), "EmbedID: id 5 at position 1 is outside [0, 5)");
  expect_refused(ids({0, -1, 4}, Dtype::kInt64), "EmbedID: id -1 at position 1 is outside [0, 5)");
  expect_refused(ids({0, -1, 4}, Dtype::kInt8), "EmbedID: id -1 at position 1 is outside [0, 5)");
  expect_refused(ids({0, 7, 4}),
                 "EmbedID: id 7 at position 1 is outside [0, 5) and not the ignored label -1", -1);
  // Modulo 2^32 or 2^64 it would be a row, or the ignored label.
  expect_refused(ids({0, (int64_t{1} << 32) + 1, 4}, Dtype::kInt64),
                 "EmbedID: id 4294967297 at position 1 is outside [0, 5)");
  expect_refused(ids({0, -1, 4}, Dtype::kUInt64),
                 "EmbedID: id 9223372036854775807 at position 1 is outside [0, 5) and not the "
                 "ignored label -1",
                 -1);
  EXPECT_NO_THROW(F::check_ids(ids({0, 5, -1}), 6, -1));
  EXPECT_THROW(F::check_ids(W, 5), DtypeError);
  // Neither a place nor a row: the table is empty.
  const Array none = zeros({0, 3}, {Dtype::kFloat64, device()});
  if (device().is_cpu())
    EXPECT_THROW(F::embed_id(ids({0}), none), ValueError);
  else
    EXPECT_TRUE(std::isnan(F::embed_id(ids({0}), none).data().to_vector<double>()[0]));
}

// After zero_grads() the gradient is overwritten, whatever its memory holds.
TEST_P(Embedding, NoIdsGiveAZeroGradient) {
  F::EmbedID embed = layer();
  const Array none = ids({}), expected = zeros({5, 3}, {Dtype::kFloat64, device()});
  embed.W.grad().fill(7);
  embed.zero_grads();
  const Variable y = embed(none);
  EXPECT_EQ(y.shape(), (Shape{0, 3}));
  y.set_grad(zeros({0, 3}, {Dtype::kFloat64, device()}));
  y.backward();
  EXPECT_EQ(testing::difference(embed.W.grad(), expected), "");
  embed.W.grad().fill(7);
  y.backward();  // adds nothing
  EXPECT_EQ(testing::difference(embed.W.grad(), full_like(expected, 7.0)), "");
}

// Of 10,000 equal ids, with tables so small that each row looks for its ids, and so large that ids
// are sorted or listed.
TEST_P(Embedding, ManyEqualIdsIn16BitsLoseNoDigits) {
  constexpr int64_t kCount = 10000;
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
    for (const int64_t rows : {3, 20000}) {
      for (const int64_t size : {5, 72}) {
        SCOPED_TRACE(message(dtype, ", ", rows, " rows of ", size));
        const Array x = full({kCount}, 1, {Dtype::kInt32, device()});
        const Array gy = draw({kCount, size}, 0.5, 1, 3, dtype);
        const Array exact = sum(gy.astype(Dtype::kFloat64), 0);
        const double error = dtype == Dtype::kFloat16 ? 6e-4 : 5e-3;
        for (const bool deterministic : {false, true}) {
          const DeterministicScope scope(deterministic);
          const Array g = gradient(x, zeros({rows, size}, {dtype, device()}), gy);
          EXPECT_NO_THROW(assert_allclose(g[1], exact, 0, error));
          EXPECT_EQ(testing::difference(g[0], zeros_like(g[0])), "");
          EXPECT_EQ(testing::difference(g[2], zeros_like(g[2])), "");
        }
      }
    }
  }
}

// Large tables, whose gradients a GPU sums another way, as small ones.
TEST_P(Embedding, GradientsOfLargeTables) {
  constexpr int64_t kRows = 24000, kSize = 96, kCount = 3000;
  const Array few = random_array({kCount}, 0, 40, Dtype::kInt64, device(), 5);
  const Array x = few * 599;  // of [0, 23361], many times each
  const Array gy = draw({kCount, kSize}, -1, 1, 6, Dtype::kFloat32);
  const Array small = gradient(few, zeros({40, kSize}, {Dtype::kFloat32, device()}), gy);
  for (const bool deterministic : {false, true}) {
    const DeterministicScope scope(deterministic);
    F::EmbedID embed(kRows, kSize,
                     {.initialW = zeros({kRows, kSize}, {Dtype::kFloat32, device()})});
    embed.W.grad().fill(3);
    embed.zero_grads();
    for (int times = 1; times <= 2; ++times) {
      const Variable y = embed(x);
      y.set_grad(gy);
      y.backward();
      const Array& g = embed.W.grad();
      EXPECT_NO_THROW(
          assert_allclose(g(Slice(0, 599 * 40, 599)), small * double(times), 1e-4, 1e-4));
      EXPECT_EQ(testing::difference(g(Slice(1, none, 599)), zeros_like(g(Slice(1, none, 599)))),
                "");
      EXPECT_NEAR(sum(g.astype(Dtype::kFloat64)).item<double>(),
                  sum(gy.astype(Dtype::kFloat64)).item<double>() * times, 1e-2);
    }
  }
}

TEST_P(Embedding, DeterministicGradientsHaveTheBitsOfTheCpu) {
  const DeterministicScope scope(true);
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16, Dtype::kFloat64}) {
    for (const int64_t rows : {7, 30000}) {
      const Array x = random_array({4000}, 0, 7, Dtype::kInt32, cpu(), 5);
      const Array gy = random_array({4000, 24}, -1, 1, dtype, cpu(), 6);
      const Array W = zeros({rows, 24}, dtype);
      const Array expected = gradient(x, W, gy);
      const Array g = gradient(x.to(device()), W.to(device()), gy.to(device()));
      EXPECT_EQ(testing::difference(g.to_cpu(), expected), "") << dtype << " rows " << rows;
    }
  }
}

// Straight into the arena of gradients: no array is made on the way, whether it is overwritten or
// added to.
TEST_P(Embedding, WritesTheGradientIntoTheArena) {
  struct Model : FunctionSet {
    F::EmbedID embed{50, 8};
    CATENA_FUNCTIONS(embed)
  };
  Model model;
  model.to(device());
  optimizers::SGD optimizer(0.1);
  optimizer.setup(model);
  const Array x = ids({3, 49, 3, 0}), gy = draw({4, 8}, -1, 1, 5, Dtype::kFloat32);
  optimizer.zero_grads();
  for (int times = 1; times <= 2; ++times) {
    const Variable y = model.embed(x);
    y.set_grad(gy);
    const void* memory = model.embed.W.grad().raw_data();
    const uint64_t before = memory_statistics(device()).allocations;
    y.backward();
    EXPECT_EQ(memory_statistics(device()).allocations, before) << "pass " << times;
    EXPECT_EQ(model.embed.W.grad().raw_data(), memory);
    EXPECT_NO_THROW(assert_allclose(model.embed.W.grad()[3], (gy[0] + gy[2]) * double(times)));
  }
}

TEST_P(Embedding, ATableOfAnotherLayoutGetsItsGradient) {
  const Parameter W(transposed_layout(draw({5, 3})));
  const Array x = ids({4, 0, 4}), gy = draw({3, 3}, -1, 1, 8);
  const Array expected = gradient(x, W.data().contiguous(), gy);
  for (int times = 1; times <= 2; ++times) {
    const Variable y = F::embed_id(x, W);
    y.set_grad(gy);
    y.backward();
    EXPECT_NO_THROW(assert_allclose(W.grad(), expected * double(times), 1e-14, 1e-14));
  }
}

TEST_P(Embedding, ErrorsNameTheLayer) {
  struct Net : FunctionSet {
    F::EmbedID words{5, 3};
    CATENA_FUNCTIONS(words)
  } net;
  net.to(device());
  expect_contains(error_of<InvalidType>([&] { net.words(draw({2})); }),
                  {"Invalid operation is performed in: EmbedID 'words' (Forward)"});
  if (!device().is_cpu()) return;
  EXPECT_EQ(error_of<ValueError>([&] { net.words(ids({9})); }),
            "EmbedID 'words': id 9 at position 0 is outside [0, 5)");
}

CATENA_ON_DEVICES(Embedding);

// Replays read the ids that are there then.
TEST(EmbeddingGraph, CapturesForwardAndBackward) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const DeviceScope scope(gpu);
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
    F::EmbedID embed(30000, 96, {.dtype = dtype});
    const Array first = random_array({4000}, 0, 30000, Dtype::kInt32, gpu, 1),
                second = random_array({4000}, 0, 30000, Dtype::kInt32, gpu, 2), x = first.copy();
    const Array gy = random_array({4000, 96}, -1, 1, dtype, gpu, 3);
    Array result;
    const auto step = [&] {
      embed.zero_grads();
      const Variable y = embed(x);
      y.set_grad(gy);
      y.backward();
      result = y.data();
    };
    step();
    cuda::Graph graph = cuda::Graph::capture(gpu, step);
    x.assign(second);
    graph.launch();
    EXPECT_EQ(testing::difference(result, take(embed.W.data(), second, 0)), "");
    const Array replayed = embed.W.grad().copy();
    step();
    const double error = dtype == Dtype::kFloat32 ? 1e-5 : 1e-2;
    EXPECT_NO_THROW(assert_allclose(replayed, embed.W.grad(), error, error));
  }
}

}  // namespace
}  // namespace catena
