#include "catena/functions/normalization/residual_stream.h"

#include <gtest/gtest.h>

#include "catena/array/random.h"
#include "catena/core/error.h"
#include "catena/functions/attention/transformer.h"
#include "catena/functions/math.h"
#include "catena/testing.h"

namespace catena {
namespace {

namespace F = functions;

Variable numbers(uint64_t seed) {
  return Variable(testing::random_array({2, 5, 8}, -1, 1, Dtype::kFloat64, cpu(0), seed));
}

// Values and gradients are those of sums, wherever what is not added yet is asked for.
TEST(ResidualStream, IsTheSumOfItsParts) {
  const F::LayerNormalization layer(8, {.dtype = Dtype::kFloat64});
  const F::RMSNormalization rms(8, {.dtype = Dtype::kFloat64});
  const Variable weight = numbers(9);
  const auto results = [&](bool as_stream) {
    const Variable x = numbers(1), a = numbers(2), b = numbers(3), c = numbers(4);
    Variable y;
    if (as_stream) {
      F::ResidualStream stream(x);
      y = stream.normalized(layer);
      stream.add(a);
      stream.add(b);
      y = y * stream.normalized(layer) + stream.normalized(rms);
      stream.add(c);
      y = y * stream.normalized(rms) + stream.sum();
      stream.add(y);
      y = stream.sum();
    } else {
      const Variable two = x + a + b, three = two + c;
      y = (layer(x) * layer(two) + rms(two)) * rms(three) + three;
      y = three + y;
    }
    F::sum(y * weight).backward();
    return Arrays{y.data(), x.grad(), a.grad(), b.grad(), c.grad()};
  };
  const Arrays got = results(true), expected = results(false);
  for (size_t i = 0; i < got.size(); ++i) assert_allclose(got[i], expected[i], 1e-12, 1e-12);
}

TEST(ResidualStream, RefusesWhatIsNotThere) {
  F::ResidualStream stream(numbers(1));
  EXPECT_THROW(stream.add(Variable()), ValueError);
}

// Layers that share a stream compute what they compute one behind the other.
TEST(ResidualStream, GoesThroughLayersOfAnEncoder) {
  for (const bool pre_norm : {false, true}) {
    random::seed(5);
    std::vector<F::TransformerEncoderLayer> layers;
    for (int i = 0; i < 3; ++i)
      layers.emplace_back(
          8, 2,
          F::TransformerOptions{
              .inner = 16, .dropout = 0, .pre_norm = pre_norm, .dtype = Dtype::kFloat64});
    const F::LayerNormalization norm(8, {.dtype = Dtype::kFloat64});
    const auto results = [&](bool as_stream) {
      const Variable x = numbers(1);
      for (F::TransformerEncoderLayer& layer : layers) layer.zero_grads();
      F::ResidualStream stream(x);
      Variable h = x;
      for (const F::TransformerEncoderLayer& layer : layers) {
        layer.add_to(stream, {.causal = true});
        h = layer(h, {.causal = true});
      }
      const Variable y = as_stream ? stream.normalized(norm) : norm(h);
      F::sum(y * numbers(2)).backward();
      return Arrays{y.data(), x.grad(), layers[1].linear2.W.grad().copy(),
                    layers[0].norm1.gamma.grad().copy()};
    };
    const Arrays got = results(true), expected = results(false);
    for (size_t i = 0; i < got.size(); ++i) assert_allclose(got[i], expected[i], 1e-11, 1e-11);
  }
}

}  // namespace
}  // namespace catena
