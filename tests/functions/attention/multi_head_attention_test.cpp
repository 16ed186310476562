// Layers of attention against their formulas by functions, states, layouts and mistakes. Numbers of
// PyTorch's layers: tests/guide/from_pytorch.
#include "catena/functions/attention/multi_head_attention.h"

#include "catena/array/logic.h"
#include "catena/functions/activation/elementwise.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/array/get_item.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/attention/gated_mlp.h"
#include "catena/functions/attention/transformer.h"
#include "catena/functions/math/matmul.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

constexpr int64_t kBatch = 2, kPositions = 5, kSize = 12, kHeads = 4;

Array random_numbers(const Shape& shape, uint64_t seed = 1) {
  return testing::random_array(shape, -1, 1, Dtype::kFloat64, cpu(0), seed);
}
const F::MultiHeadAttentionOptions kDouble{.dtype = Dtype::kFloat64};

// Each head by itself, with rows of the projection.
Variable by_heads(const F::MultiHeadAttention& layer, const Variable& x, const Variable& memory) {
  const int64_t depth = layer.size() / layer.heads(), of_group = layer.heads() / layer.groups();
  Variables heads;
  for (int64_t h = 0; h < layer.heads(); ++h) {
    const auto part = [&](const Variable& from, int64_t first) {
      const Slice rows(first, first + depth);
      const Variable W = F::get_item(layer.in_proj_W, {rows});
      const Variable b = F::get_item(*layer.in_proj_b, {rows});
      return F::matmul(from, W, false, true) + b;
    };
    const int64_t group = h / of_group * depth, keys = layer.size(),
                  values = keys + layer.groups() * depth;
    const Variable scores = F::matmul(part(x, h * depth), part(memory, keys + group), false, true);
    heads.push_back(
        F::matmul(F::softmax(scores / std::sqrt(double(depth)), 2), part(memory, values + group)));
  }
  return F::matmul(F::concat(heads, 2), layer.out_proj.W, false, true) + layer.out_proj.b;
}

TEST(MultiHeadAttention, IsItsFormula) {
  for (const int64_t groups : {kHeads, int64_t(2), int64_t(1)}) {
    F::MultiHeadAttentionOptions options = kDouble;
    options.groups = groups;
    options.initial_bias = initializers::Normal(0.5);
    const F::MultiHeadAttention layer(kSize, kHeads, options);
    const Variable x(random_numbers({kBatch, kPositions, kSize})),
        memory(random_numbers({kBatch, 7, kSize}, 2));
    assert_allclose(layer(x).data(), by_heads(layer, x, x).data(), 1e-12, 1e-12);
    assert_allclose(layer(x, memory).data(), by_heads(layer, x, memory).data(), 1e-12, 1e-12);
  }
}

TEST(MultiHeadAttention, AttendsByOptions) {
  const F::MultiHeadAttention layer(kSize, kHeads, kDouble);
  const Array x = random_numbers({1, kPositions, kSize});
  const Variable all = layer(x, {.causal = true});
  for (int64_t n = 1; n <= kPositions; ++n) {
    const Variable first = layer(x.at({Slice(), Slice(0, n)}), {.causal = true});
    assert_allclose(first.data(), all.data().at({Slice(), Slice(0, n)}), 1e-12, 1e-12);
  }
}

TEST(MultiHeadAttention, TurnsQueriesAndKeysByTheirPositions) {
  F::MultiHeadAttentionOptions options = kDouble;
  options.groups = 1;
  const F::MultiHeadAttention plain(kSize, 2, options);
  options.rotary = F::RotaryOptions{.base = 100, .start = 3};
  F::MultiHeadAttention layer(kSize, 2, options);
  layer.copy_parameters_from(plain);
  const Variable x(random_numbers({kBatch, kPositions, kSize}));
  const Variable all = F::matmul(x, layer.in_proj_W, false, true) + *layer.in_proj_b;
  const auto heads = [&](int64_t first, int64_t count) {  // of 6 numbers each
    Variables each;
    for (int64_t h = 0; h < count; ++h)
      each.push_back(
          F::expand_dims(all(Slice(), Slice(), Slice(first + 6 * h, first + 6 * h + 6)), 1));
    return F::concat(each, 1);
  };
  const F::RotaryOptions turn{.base = 100};  // whose start does not matter
  const Variable y = F::scaled_dot_product_attention(F::rotary_embedding(heads(0, 2), turn),
                                                     F::rotary_embedding(heads(12, 1), turn),
                                                     heads(18, 1), {.causal = true});
  const Variable joined = F::concat({y(Slice(), 0), y(Slice(), 1)}, 2);
  const Variable expected = F::matmul(joined, layer.out_proj.W, false, true) + layer.out_proj.b;
  assert_allclose(layer(x, {.causal = true}).data(), expected.data(), 1e-12, 1e-12);
  EXPECT_FALSE(allclose(plain(x, {.causal = true}).data(), expected.data()));
}

TEST(MultiHeadAttention, HasBiasesUnlessToldOtherwise) {
  F::MultiHeadAttention plain(kSize, kHeads, {.nobias = true});
  EXPECT_EQ(plain.named_parameters().size(), 2u);
  F::MultiHeadAttention layer(kSize, kHeads);
  std::vector<std::string> paths;
  for (const auto& [path, p] : layer.named_parameters()) paths.push_back(path);
  EXPECT_EQ(paths,
            (std::vector<std::string>{"in_proj_W", "in_proj_b", "out_proj/W", "out_proj/b"}));
}

// The weights of keys, in train state and where the call does not say.
TEST(MultiHeadAttention, DropsWhileTraining) {
  F::MultiHeadAttention layer(kSize, kHeads, {.dropout = 0.5});
  const Array x = random_numbers({kBatch, kPositions, kSize}).astype(Dtype::kFloat32);
  layer.eval();
  const Array still = layer(x).data();
  EXPECT_TRUE(allclose(layer(x).data(), still));
  EXPECT_FALSE(allclose(layer(x, {.dropout = 0.1}).data(), still));
  layer.train();
  EXPECT_FALSE(allclose(layer(x).data(), still));
}

TEST(MultiHeadAttention, Mistakes) {
  expect_contains(error_of<ValueError>([] { F::MultiHeadAttention(10, 3); }),
                  {"MultiHeadAttention", "3 heads of 10"});
  expect_contains(error_of<ValueError>([] { F::MultiHeadAttention(16, 0); }), {"0 heads of 16"});
  expect_contains(error_of<ValueError>([] {
                    F::MultiHeadAttention(
                        4, 2, {.nobias = true, .initial_bias = initializers::Normal(1)});
                  }),
                  {"nobias and initial_bias"});
  expect_contains(error_of<ValueError>([] { F::MultiHeadAttention(12, 4, {.groups = 3}); }),
                  {"divide the 4 heads, got 3"});
  expect_contains(error_of<ValueError>([] { F::MultiHeadAttention(12, 4, {.dropout = 1}); }),
                  {"dropout of [0, 1), got 1"});
  expect_contains(error_of<ValueError>([] {
                    F::MultiHeadAttention(4, 2, {.initialW = random_numbers({4, 4})});
                  }),
                  {"different shapes"});
  const F::MultiHeadAttention layer(kSize, kHeads, kDouble);
  expect_contains(error_of<ShapeError>([&] {
                    layer(random_numbers({kPositions, kSize}));
                  }),
                  {"expected x as (batch, positions, 12), got shape (5, 12)"});
  expect_contains(error_of<ShapeError>([&] {
                    layer(random_numbers({1, 3, kSize}), random_numbers({1, 3, 8}));
                  }),
                  {"expected memory as (batch, positions, 12)"});
  expect_contains(error_of<ShapeError>([&] {
                    layer(random_numbers({2, 3, kSize}), random_numbers({3, 3, kSize}));
                  }),
                  {"x has a batch of 2, memory one of 3"});
}

// Of both orders of normalization and addition, in test state.
TEST(TransformerEncoderLayer, IsItsFormula) {
  for (const bool pre_norm : {false, true}) {
    F::TransformerEncoderLayer layer(kSize, kHeads,
                                     {.inner = 20,
                                      .activation = F::TransformerActivation::kGelu,
                                      .pre_norm = pre_norm,
                                      .dtype = Dtype::kFloat64});
    layer.eval();
    const Variable x(random_numbers({kBatch, kPositions, kSize}));
    const auto products = [&](const Variable& in) {
      return F::matmul(F::gelu(F::matmul(in, layer.linear1.W, false, true) + layer.linear1.b),
                       layer.linear2.W, false, true) +
             layer.linear2.b;
    };
    const Variable h =
        pre_norm ? x + layer.self_attn(layer.norm1(x)) : layer.norm1(x + layer.self_attn(x));
    const Variable expected =
        pre_norm ? h + products(layer.norm2(h)) : layer.norm2(h + products(h));
    assert_allclose(layer(x).data(), expected.data(), 1e-12, 1e-12);
    layer.train();
    EXPECT_FALSE(allclose(layer(x).data(), expected.data()));
  }
}

TEST(TransformerDecoderLayer, AttendsToItsPastAndToTheMemory) {
  F::TransformerDecoderLayer layer(kSize, kHeads, {.inner = 20, .dtype = Dtype::kFloat64});
  layer.eval();
  const Array x = random_numbers({1, kPositions, kSize});
  const Variable memory(random_numbers({1, 7, kSize}, 2));
  const Array y = layer(x, memory).data();
  const Array first = layer(x.at({Slice(), Slice(0, 2)}), memory).data();
  assert_allclose(y.at({Slice(), Slice(0, 2)}), first, 1e-12, 1e-12);
  const Array padded = layer(x, memory, {.causal = true}, {.key_lengths = array({3})}).data();
  assert_allclose(padded, layer(x, memory(Slice(), Slice(0, 3))).data(), 1e-12, 1e-12);
  EXPECT_FALSE(allclose(padded, y));
}

// One behind the other, in both orders of normalization and addition.
TEST(TransformerDecoderLayer, AddsToAStream) {
  for (const bool pre_norm : {false, true}) {
    const auto layer = [&] {
      return F::TransformerDecoderLayer(
          kSize, kHeads,
          {.inner = 20, .dropout = 0, .pre_norm = pre_norm, .dtype = Dtype::kFloat64});
    };
    const F::TransformerDecoderLayer first = layer(), second = layer();
    const Variable x(random_numbers({2, kPositions, kSize}));
    const Variable memory(random_numbers({2, 7, kSize}, 2));
    F::ResidualStream stream(x);
    first.add_to(stream, memory);
    second.add_to(stream, memory, {}, {.key_lengths = array({3, 7})});
    const Variable expected = second(first(x, memory), memory, {}, {.key_lengths = array({3, 7})});
    assert_allclose(stream.sum().data(), expected.data(), 1e-12, 1e-12);
  }
}

TEST(GatedMlp, IsItsFormula) {
  const Variable x(random_numbers({kBatch, kPositions, kSize}));
  for (const F::Gate gate : {F::Gate::kSilu, F::Gate::kGelu, F::Gate::kGeluTanh}) {
    const F::GatedMlp mlp(kSize, 20, {.gate = gate, .dtype = Dtype::kFloat64});
    const Variable g = F::matmul(x, mlp.gate_proj.W, false, true);
    const Variable opened = gate == F::Gate::kSilu   ? F::silu(g)
                            : gate == F::Gate::kGelu ? F::gelu(g)
                                                     : F::gelu_tanh(g);
    const Variable expected =
        F::matmul(opened * F::matmul(x, mlp.up_proj.W, false, true), mlp.down_proj.W, false, true);
    assert_allclose(mlp(x).data(), expected.data(), 1e-12, 1e-12);
  }
  const F::GatedMlp mlp(kSize, 20);
  expect_contains(error_of<ShapeError>([&] {
                    mlp(random_numbers({2, 5}));
                  }),
                  {"GatedMlp: expected x as (..., 12), got shape (2, 5)"});
}

}  // namespace
}  // namespace catena
