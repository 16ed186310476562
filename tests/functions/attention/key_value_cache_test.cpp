// Caches of keys: attention part by part against attention at once, and mistakes. Tokens:
// generation_test.cpp.
#include "catena/functions/attention/key_value_cache.h"

#include <cmath>
#include <limits>

#include "catena/array/arguments.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/autograd/autocast.h"
#include "catena/functions/array/transpose.h"
#include "catena/functions/attention/alibi.h"
#include "catena/functions/attention/transformer.h"
#include "catena/kernels/slot.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using Tokens = std::vector<int64_t>;

class KeyValueCache : public OnDevice {};

// Attention -----------------------------------------------------------------------------------

constexpr int64_t kBatch = 2, kHeads = 4, kGroups = 2, kPositions = 7, kDepth = 8;

F::KeyValueCacheOptions sizes(Device device, Dtype dtype = Dtype::kFloat64) {
  return {.batch = kBatch,
          .groups = kGroups,
          .capacity = kPositions + 3,
          .depth = kDepth,
          .dtype = dtype,
          .device = device};
}

Variable part(const Variable& x, int64_t first, int64_t last) {
  return x(Slice(), Slice(), Slice(first, last));
}

struct Operands {
  Variable q, k, v;

  // With heads behind positions in memory, as projections give them.
  Operands(Device device, Dtype dtype) {
    uint64_t seed = 0;
    for (Variable* x : {&q, &k, &v}) {
      const int64_t heads = x == &q ? kHeads : kGroups;
      *x = F::transpose(
          Variable(random_array({kBatch, kPositions, heads, kDepth}, -1, 1, dtype, device, ++seed)),
          {0, 2, 1, 3});
    }
  }
  // Positions [first, last), which the cache gets.
  Variable attend(F::KeyValueCache& cache, int64_t first, int64_t last,
                  const F::AttentionOptions& options = {}) const {
    cache.extend(last - first);
    return cache.layer(0).attend(part(q, first, last), part(k, first, last), part(v, first, last),
                                 options);
  }
};

// Options, for so many keys.
struct Rule {
  const char* name;
  std::function<F::AttentionOptions(int64_t keys)> options;
};

std::vector<Rule> rules(Device device) {
  return {
      {"plain", [](int64_t) { return F::AttentionOptions{}; }},
      {"window", [](int64_t) { return F::AttentionOptions{.scale = 0.7, .window = 3}; }},
      {"softcap", [](int64_t) { return F::AttentionOptions{.softcap = 0.5}; }},
      {"alibi",
       [=](int64_t keys) {
         return F::AttentionOptions{
             .bias = F::alibi_bias(kHeads, 1, keys,
                                   {.causal = true, .dtype = Dtype::kFloat64, .device = device})};
       }},
      {"mask", [=](int64_t keys) {
         return F::AttentionOptions{.mask =
                                        remainder(arange(keys, {Dtype::kInt64, device}), 3) != 1};
       }}};
}

TEST_P(KeyValueCache, PartsGiveWhatAllGive) {
  const NoBackprop scope;
  const Operands x(device(), Dtype::kFloat64);
  for (const Rule& rule : rules(device())) {
    SCOPED_TRACE(rule.name);
    F::AttentionOptions at_once = rule.options(kPositions);
    at_once.causal = true;
    const Array all = F::scaled_dot_product_attention(x.q, x.k, x.v, at_once).data();
    F::KeyValueCache cache(sizes(device()));
    const F::AttentionOptions options = rule.options(cache.options().capacity);
    for (const auto& [first, last] : {std::pair{0, 4}, {4, 5}, {5, 7}}) {
      const Array y = x.attend(cache, first, last, options).data();
      assert_allclose(y, part(all, first, last).data(), 1e-12, 1e-12);
    }
    EXPECT_EQ(cache.lengths(), (Tokens{kPositions, kPositions}));
  }
}

TEST_P(KeyValueCache, HasEachDtype) {
  const NoBackprop scope;
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16}) {
    const Operands x(device(), dtype);
    const double tolerance = dtype == Dtype::kFloat32 ? 1e-5 : 2e-2;
    const Array all = F::scaled_dot_product_attention(x.q, x.k, x.v, {.causal = true}).data();
    F::KeyValueCache cache(sizes(device(), dtype));
    x.attend(cache, 0, 6);
    const Array last = x.attend(cache, 6, 7).data();
    EXPECT_EQ(last.dtype(), dtype);
    assert_allclose(last.astype(Dtype::kFloat64), part(all, 6, 7).data().astype(Dtype::kFloat64),
                    tolerance, tolerance);
  }
}

// Two positions in each row, of which the second loses one, then two more. What was cut off, or
// never written, is NaN.
void expect_rows_go_on(Device device) {
  const Operands x(device, Dtype::kFloat64);
  F::KeyValueCache cache(sizes(device));
  cache.extend(kPositions + 3);
  const Array nothing =
      full({kBatch, kGroups, kPositions + 3, kDepth}, std::nan(""), {Dtype::kFloat64, device});
  cache.layer(0).attend(zeros({kBatch, kHeads, kPositions + 3, kDepth}, {Dtype::kFloat64, device}),
                        nothing, nothing);
  cache.clear();
  x.attend(cache, 0, 2);
  cache.truncate({2, 1});
  EXPECT_EQ(cache.lengths(), (Tokens{2, 1}));
  const Array y = x.attend(cache, 4, 6).data();
  EXPECT_EQ(testing::difference(cache.positions(),
                                array({{2, 3}, {1, 2}}).astype(Dtype::kInt32).to(device)),
            "");
  for (int64_t b = 0; b < kBatch; ++b) {
    const auto row = [&](const Variable& a) {
      const Array whole = a.data()(Slice(b, b + 1));
      return concatenate({part(whole, 0, 2 - b).data(), part(whole, 4, 6).data()}, 2);
    };
    const Variable expected =
        F::scaled_dot_product_attention(row(x.q), row(x.k), row(x.v), {.causal = true});
    assert_allclose(y(Slice(b, b + 1)), part(expected, 2 - b, 4 - b).data(), 1e-12, 1e-12);
  }
}

// By providers that read all keys, too.
TEST_P(KeyValueCache, RowsGoOnFromTheirOwnLengths) {
  const NoBackprop scope;
  expect_rows_go_on(device());
  const ProviderScope composed("attention/composed:only");
  expect_rows_go_on(device());
}

TEST_P(KeyValueCache, DecodersAttendToTheirMemoryToo) {
  const NoBackprop scope;
  F::TransformerDecoderLayer layer(16, 4,
                                   {.inner = 20,
                                    .dropout = 0,
                                    .groups = 2,
                                    .rotary = F::RotaryOptions{},
                                    .dtype = Dtype::kFloat64});
  layer.to(device());
  const Array x = draw({2, 5, 16}), memory = draw({2, 3, 16}, -1, 1, 2);
  const Array lengths = array({3, 2}).to(device());
  const Array all = layer(x, memory, {.causal = true}, {.key_lengths = lengths}).data();
  F::KeyValueCache cache({.batch = 2,
                          .groups = 2,
                          .capacity = 5,
                          .depth = 4,
                          .dtype = Dtype::kFloat64,
                          .device = device()});
  const F::MemoryKeys keys = layer.multihead_attn.keys_of(memory);
  for (const auto& [first, last] : {std::pair{0, 3}, {3, 4}, {4, 5}}) {
    const Slice own(first, last);
    cache.extend(last - first);
    const Variable y = layer(x(Slice(), own), memory, cache.layer(0), {}, {.key_lengths = lengths});
    assert_allclose(y.data(), all(Slice(), own), 1e-12, 1e-12);
    // The same word once more, by keys of the memory that were made before.
    cache.truncate(Tokens(2, first));
    cache.extend(last - first);
    const Variable again =
        layer(x(Slice(), own), keys, cache.layer(0), {}, {.key_lengths = lengths});
    assert_allclose(again.data(), all(Slice(), own), 1e-12, 1e-12);
  }
}

// Row 1 goes on twice, with positions 3 and 4 of both; then the two change places.
TEST_P(KeyValueCache, RowsGoOnFromOtherRows) {
  const NoBackprop scope;
  const Operands x(device(), Dtype::kFloat64);
  F::KeyValueCache cache(sizes(device()));
  x.attend(cache, 0, 3);
  cache.truncate({3, 2});
  cache.reorder({1, 1});
  EXPECT_EQ(cache.lengths(), (Tokens{2, 2}));
  const Array two = x.attend(cache, 3, 5).data();
  cache.reorder({1, 0});
  const Array third = x.attend(cache, 5, 6).data();
  for (int64_t b = 0; b < kBatch; ++b) {
    const auto expected = [&](int64_t before) {  // whose positions 3 and 4 come first
      const auto all = [&](const Variable& a) {
        const auto of = [&](int64_t row, int64_t first, int64_t last) {
          return part(a(Slice(row, row + 1)), first, last).data();
        };
        return concatenate({of(1, 0, 2), of(before, 3, 5), of(b, 5, 6)}, 2);
      };
      return F::scaled_dot_product_attention(all(x.q), all(x.k), all(x.v), {.causal = true});
    };
    const Slice row(b, b + 1);
    assert_allclose(two(row), part(expected(b), 2, 4).data(), 1e-12, 1e-12);
    assert_allclose(third(row), part(expected(1 - b), 4, 5).data(), 1e-12, 1e-12);
  }
}

TEST_P(KeyValueCache, HasTheDtypeOfAutocast) {
  const NoBackprop scope;
  const AutocastScope autocast(Dtype::kBFloat16);
  F::MultiHeadAttention layer(16, 4, {.groups = kGroups});
  layer.to(device());
  const Array x = draw({1, 5, 16}).astype(Dtype::kFloat32);
  F::KeyValueCache cache({.groups = kGroups,
                          .capacity = 5,
                          .depth = 4,
                          .dtype = AutocastScope::low(),
                          .device = device()});
  const Array all = layer(x, {.causal = true}).data();
  for (int64_t i = 0; i < 5; ++i) {
    cache.extend(1);
    const Array y = layer(x(Slice(), Slice(i, i + 1)), cache.layer(0)).data();
    EXPECT_EQ(y.dtype(), Dtype::kBFloat16);
    assert_allclose(y.astype(Dtype::kFloat64),
                    all(Slice(), Slice(i, i + 1)).astype(Dtype::kFloat64), 2e-2, 2e-2);
  }
}

CATENA_ON_DEVICES(KeyValueCache);

// Mistakes ------------------------------------------------------------------------------------

TEST(KeyValueCacheMistakes, OfSizesAndLengths) {
  expect_contains(error_of<ValueError>([] { F::KeyValueCache({.layers = 0, .capacity = 8}); }),
                  {"KeyValueCache: expected sizes of at least 1", "layers 0", "capacity 8"});
  expect_contains(error_of<ValueError>([] { F::KeyValueCache({.capacity = int64_t(1) << 31}); }),
                  {"int32", "2147483648"});
  expect_contains(error_of<DtypeError>([] { F::KeyValueCache({.dtype = Dtype::kInt32}); }),
                  {"floating dtype, got int32"});
  const NoBackprop scope;
  const Operands x(cpu(), Dtype::kFloat64);
  F::KeyValueCache cache(sizes(cpu()));
  x.attend(cache, 0, 7);
  cache.truncate({3, 7});
  for (const int64_t n : {4, 7})
    expect_contains(error_of<ValueError>([&] { cache.extend(n); }),
                    {"row 1 has 7 positions of a capacity of 10, asked for " + std::to_string(n),
                     "larger capacity", "truncate()", "clear()"});
  EXPECT_EQ(cache.lengths(), (Tokens{3, 7})) << "as before";
  x.attend(cache, 0, 3);
  EXPECT_EQ(cache.lengths(), (Tokens{6, 10}));
  expect_contains(error_of<ValueError>([&] { cache.extend(0); }), {"at least one position, got 0"});
  expect_contains(error_of<ValueError>([&] { cache.truncate({1}); }), {"2 rows, got 1"});
  for (const int64_t length : {-1, 7})
    expect_contains(error_of<ValueError>([&] {
                      cache.truncate({length, 0});
                    }),
                    {"row 0 has 6 positions and cannot be cut to " + std::to_string(length)});
  expect_contains(error_of<ValueError>([&] { cache.reorder({0}); }),
                  {"2 rows for reorder(), got 1"});
  expect_contains(error_of<IndexError>([&] {
                    cache.reorder({0, 2});
                  }),
                  {"there are 2 rows, reorder() was asked for row 2"});
  EXPECT_EQ(cache.lengths(), (Tokens{6, 10}));
  for (const int64_t i : {-1, 1})
    expect_contains(error_of<IndexError>([&] { cache.layer(i); }),
                    {"there are 1 layers, asked for layer " + std::to_string(i)});
}

// To its last position, of which a layer can write none any more.
TEST(KeyValueCacheMistakes, OfAFullCache) {
  const NoBackprop scope;
  const Operands x(cpu(), Dtype::kFloat64);
  F::KeyValueCache cache(sizes(cpu()));
  x.attend(cache, 0, 7);
  x.attend(cache, 0, 3);
  EXPECT_EQ(cache.lengths(), (Tokens{10, 10}));
  EXPECT_EQ(error_of<ValueError>([&] { cache.extend(1); }),
            "KeyValueCache: row 0 has 10 positions of a capacity of 10, asked for 1 more; make the "
            "cache with a larger capacity, or truncate() or clear() it");
  const auto write = [&] {
    cache.layer(0).attend(part(x.q, 0, 1), part(x.k, 0, 1), part(x.v, 0, 1));
  };
  EXPECT_THROW(write(), Error);
  EXPECT_EQ(cache.lengths(), (Tokens{10, 10}));
  cache.truncate({10, 9});
  expect_contains(error_of<ValueError>([&] { cache.extend(1); }), {"row 0 has 10 positions"});
  cache.truncate({9, 9});
  x.attend(cache, 0, 1);
  EXPECT_EQ(cache.lengths(), (Tokens{10, 10}));
}

TEST(KeyValueCacheMistakes, OfCalls) {
  const Operands x(cpu(), Dtype::kFloat64);
  F::KeyValueCache cache(sizes(cpu()));
  const auto all = [&](const F::AttentionOptions& options = {}) {
    return cache.layer(0).attend(x.q, x.k, x.v, options);
  };
  expect_contains(error_of<GradientError>([&] { all(); }), {"no gradients", "NoBackprop"});
  const NoBackprop scope;
  for (const auto& call : {std::function<void()>([&] { all(); }), {[&] { cache.positions(); }}})
    expect_contains(error_of<ValueError>(call), {"there is no room", "extend(n)"});
  cache.extend(kPositions);
  for (const F::AttentionOptions& options : {F::AttentionOptions{.key_lengths = array({1, 2})},
                                             {.query_start = array({1, 2})},
                                             {.documents = array({0, 7})}})
    expect_contains(error_of<ValueError>([&] { all(options); }),
                    {"the cache has the lengths and positions", "leave out key_lengths"});
  const auto part_of = [&](const Variable& q, const Variable& k, const Variable& v) {
    return cache.layer(0).attend(q, k, v);
  };
  const auto narrow = [](const Variable& a) { return Variable(a.data().astype(Dtype::kFloat32)); };
  expect_contains(error_of<DtypeError>([&] { part_of(x.q, narrow(x.k), x.v); }),
                  {"the cache has float64, keys have float32", "{.dtype = dtype::float32}"});
  expect_contains(error_of<DtypeError>([&] { part_of(narrow(x.q), x.k, x.v); }), {"queries have"});
  const Array elsewhere = x.v.data().to(cpu(1));
  expect_contains(error_of<DeviceError>([&] { part_of(x.q, x.k, elsewhere); }),
                  {"the cache is on cpu:0, values on cpu:1", "{.device = "});
  expect_contains(error_of<ShapeError>([&] { part_of(x.q, part(x.k, 0, 6), x.v); }),
                  {"expected keys of shape", "last extend()", "(2, 2, 7, 8), got (2, 2, 6, 8)"});
  expect_contains(error_of<ShapeError>([&] { part_of(x.q(Slice(0, 1)), x.k, x.v); }),
                  {"expected queries of shape", "(2, 4, 7, 8), got (1, 4, 7, 8)"});
  expect_contains(error_of<ShapeError>([&] { part_of(x.q(Slice(), Slice(0, 3)), x.k, x.v); }),
                  {"expected queries", "got (2, 3, 7, 8)"});
  EXPECT_THROW(all({.mask = ones({3, 3}, {Dtype::kBool, cpu()})}), Error);
  all();  // what failed may be called again
  expect_contains(error_of<ValueError>([&] { all(); }),
                  {"layer 0 has written", "extend(n) once for each call"});
  cache.truncate({1, 1});
  expect_contains(error_of<ValueError>([&] { all(); }), {"there is no room"});
  const F::KeyValueCache other = std::move(cache);
  expect_contains(error_of<ValueError>([&] { cache.extend(1); }), {"was moved from"});
}

// What a layer did not write would be read later.
TEST(KeyValueCacheMistakes, OfLayersThatAreLeftOut) {
  const NoBackprop scope;
  const Operands x(cpu(), Dtype::kFloat64);
  F::KeyValueCacheOptions options = sizes(cpu());
  options.layers = 2;
  F::KeyValueCache cache(options);
  x.attend(cache, 0, 2);
  expect_contains(error_of<ValueError>([&] { cache.extend(1); }),
                  {"layer 1 of 2 did not write", "truncate() to the lengths before it"});
  cache.truncate({1, 0});
  EXPECT_THROW(cache.extend(1), ValueError);
  cache.clear();
  cache.extend(1);
}

TEST(KeyValueCacheMistakes, OfMultiHeadAttention) {
  expect_contains(
      error_of<ValueError>([] { F::MultiHeadAttention(12, 4, {.rotary = F::RotaryOptions{}}); }),
      {"even number of rotated numbers", "got 3"});
  expect_contains(error_of<ValueError>([] {
                    F::MultiHeadAttention(12, 2,
                                          {.rotary = F::RotaryOptions{.positions = array({1})}});
                  }),
                  {"the rotary options have positions"});
  const F::MultiHeadAttention layer(12, 2, {.rotary = F::RotaryOptions{}});
  const Array x = random_array({2, 3, 12}, -1, 1, Dtype::kFloat32, cpu(), 1);
  expect_contains(error_of<ValueError>([&] { layer(x, x); }), {"rotary", "attention to x itself"});
  F::KeyValueCache cache({.batch = 2, .groups = 2, .capacity = 3, .depth = 6});
  cache.extend(1);
  expect_contains(error_of<GradientError>([&] { layer(x, cache.layer(0)); }), {"NoBackprop"});
  const NoBackprop scope;
  expect_contains(error_of<ShapeError>([&] { layer(x, cache.layer(0)); }),
                  {"queries", "(2, 2, 1, 6), got (2, 2, 3, 6)"});
  const Array other = random_array({3, 1, 12}, -1, 1, Dtype::kFloat32, cpu(), 1);
  expect_contains(error_of<ShapeError>([&] { layer(other, cache.layer(0)); }),
                  {"KeyValueCache: expected queries", "(2, 2, 1, 6), got (3, 2, 1, 6)"});
}

}  // namespace
}  // namespace catena
