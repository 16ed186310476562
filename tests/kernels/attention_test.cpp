// Every provider of attention against the one that is composed of array functions, in float64:
// random shapes around the sizes of tiles, rules, layouts and dtypes.
#include "catena/kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/core/device.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/array/cast.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/split_axis.h"
#include "catena/functions/array/transpose.h"
#include "catena/functions/attention/scaled_dot_product_attention.h"
#include "catena/functions/math.h"
#include "catena/functions/math/matmul.h"
#include "catena/functions/noise/dropout.h"
#include "catena/testing.h"
#include "catena/testing_markers.h"
#include "deterministic_scope.h"
#include "kernels/attention_case.h"

namespace catena {
namespace {

namespace F = functions;

using testing::Case;
using testing::draw;
using testing::expect_like_composed;
using testing::kComposedAlone;
using testing::kResults;
using testing::kTypes;
using testing::moved;
using testing::run;
using testing::Type;

TEST(Attention, RandomCasesInEveryDtype) {
  for (uint64_t seed = 0; seed < 160; ++seed)
    expect_like_composed(seed, kTypes[seed % std::size(kTypes)], cpu(0));
}

// Without float64, which GPUs leave to the composed provider. Forty for the sanitizer, as they take
// long there.
TEST(CudaAttention, FewRandomCases) {
  CATENA_NEEDS_GPU();
  for (uint64_t seed = 0; seed < 40; ++seed)
    expect_like_composed(seed, kTypes[1 + seed % 3], cuda_device(0));
}
TEST(CudaAttention, FewRandomCasesInTf32) {
  CATENA_NEEDS_GPU();
  for (uint64_t seed = 2000; seed < 2012; ++seed)
    expect_like_composed(seed, testing::kTf32, cuda_device(0));
}
TEST(CudaAttention, RandomCasesInTf32) {
  CATENA_NEEDS_GPU();
  for (uint64_t seed = 2012; seed < 2200; ++seed)
    expect_like_composed(seed, testing::kTf32, cuda_device(0));
}
TEST(CudaAttention, RandomCasesInEveryDtype) {
  CATENA_NEEDS_GPU();
  for (uint64_t seed = 1000; seed < 1600; ++seed)
    expect_like_composed(seed, kTypes[1 + seed % 3], cuda_device(0));
}

// What most networks call, which has kernels of its own: at sizes of several tiles.
TEST(CudaAttention, PlainCallsOfManyTiles) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  for (const Type& type : {kTypes[1], kTypes[2], kTypes[3]}) {
    for (const int64_t depth : {64, 128, 256}) {
      for (const bool causal : {false, true}) {
        for (const int64_t positions : {192, 511, 1000}) {
          SCOPED_TRACE(message(type.dtype, ' ', depth, ' ', causal, ' ', positions));
          Case c;
          uint64_t seed = uint64_t(positions);
          const auto numbers = [&](int64_t heads) {
            return testing::random_array({2, heads, positions, depth}, -1, 1, Dtype::kFloat64,
                                         cpu(0), seed++)
                .astype(type.dtype);
          };
          c.q = numbers(2);
          c.k = numbers(1);
          c.v = numbers(1);
          c.gy = numbers(2);
          c.options.causal = causal;
          expect_like_composed(c, type, gpu);
        }
      }
    }
  }
}

// Forward, backward, and both again while other work runs.
TEST(CudaAttention, EqualCallsGiveEqualBits) {
  CATENA_NEEDS_GPU();
  const DeterministicScope deterministic;
  const Device gpu = cuda_device(0);
  for (const uint64_t seed : {1004, 1013, 1026, 1039, 1047}) {
    const Dtype dtype = kTypes[1 + seed % 3].dtype;
    const Case c = draw(seed, dtype);
    const Arrays first = run(c, gpu, dtype);
    for (int round = 0; round < 10; ++round) {
      const Arrays again = run(c, gpu, dtype);
      for (size_t i = 0; i < first.size(); ++i)
        EXPECT_TRUE(all(logical_or(equal(first[i], again[i]),
                                   logical_and(isnan(first[i]), isnan(again[i]))))
                        .truth())
            << seed << ' ' << kResults[i];
    }
  }
}

// Gradients of queries are added up in an order that does not depend on the number of threads.
TEST(Attention, BitsDoNotDependOnThreads) {
  const int before = cpu_threads();
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const Case c = draw(seed, Dtype::kFloat32);
    set_cpu_threads(1);
    const Arrays one = run(c, cpu(0), Dtype::kFloat32);
    set_cpu_threads(3);
    const Arrays three = run(c, cpu(0), Dtype::kFloat32);
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_EQ(one[i].to_vector<float>(), three[i].to_vector<float>()) << seed << kResults[i];
  }
  set_cpu_threads(before);
}

// The mask is that of dropout on the weights, whatever the tiles.
TEST(Attention, DropsWhatDropoutDrops) {
  const int64_t batch = 2, queries = 70, keys = 150, depth = 4;
  const auto drawn = [&](int64_t rows, uint64_t seed) {
    return Variable(
        testing::random_array({batch, rows, depth}, -2, 2, Dtype::kFloat64, cpu(0), seed));
  };
  const Variable q = drawn(queries, 1), k = drawn(keys, 2), v = drawn(keys, 3);
  random::seed(3);
  const Variable weights = F::softmax(F::batch_matmul(q, k, false, true) / 2, 2);
  const Variable expected = F::batch_matmul(F::dropout(weights, 0.25), v);
  random::seed(3);
  const auto heads = [](const Variable& x) { return F::expand_dims(x, 1); };
  const Variable y =
      F::scaled_dot_product_attention(heads(q), heads(k), heads(v), {.dropout = 0.25});
  assert_allclose(y.data().reshape(expected.shape()), expected.data(), 1e-12, 1e-12);
}

// Slices of one projection need no copies, and the result has positions before heads, too.
TEST(Attention, KeepsTheOrderOfTheQueries) {
  const Variable projection(
      testing::random_array({2, 9, 3, 4, 8}, -1, 1, Dtype::kFloat32, cpu(0), 1));
  const auto part = [&](int64_t i) {
    return projection.data().at({Slice(), Slice(), i}).transpose({0, 2, 1, 3});
  };
  const Variable y = F::scaled_dot_product_attention(part(0), part(1), part(2));
  EXPECT_TRUE(y.data().transpose({0, 2, 1, 3}).is_contiguous());
}

std::vector<Device> devices() {
  std::vector<Device> all{cpu(0)};
  if (device_count(DeviceType::kCuda) > 0) all.push_back(cuda_device(0));
  return all;
}

// Behind key_lengths memory may hold anything, for every provider and in both orders of gradients.
TEST(Attention, ReadsNoKeysBehindTheLengths) {
  const Array q = testing::random_array({2, 2, 5, 4}, -1, 1, Dtype::kFloat64, cpu(0), 1),
              k = testing::random_array({2, 2, 9, 4}, -1, 1, Dtype::kFloat64, cpu(0), 2),
              lengths = array({6, 0});
  const Array clean = k.copy(), dirty = k.copy();
  const Array behind = greater_equal(arange(9).reshape({1, 9, 1}), lengths.reshape({2, 1, 1, 1}));
  clean.assign(where(behind, 0, k));
  dirty.assign(where(behind, std::nan(""), k));
  const auto run_on = [&](Device device, Dtype dtype, const char* rules, bool create_graph) {
    const ProviderScope scope(rules);
    Arrays results[2];
    for (const bool is_dirty : {false, true}) {
      const Array keys = moved(is_dirty ? dirty : clean, device, dtype);
      const Variable x(moved(q, device, dtype)), y(keys), z(keys.copy());
      const Variable out =
          F::scaled_dot_product_attention(x, y, z, {.key_lengths = lengths.to(device)});
      F::sum(out * out).backward({.create_graph = create_graph});
      results[is_dirty] = {out.data(), x.grad(), y.grad(), z.grad()};
    }
    for (size_t i = 0; i < results[0].size(); ++i)
      EXPECT_TRUE(all(equal(results[0][i], results[1][i])).truth())
          << device << ' ' << dtype << ' ' << rules << ' ' << i;
  };
  for (const Device device : devices())
    for (const Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32, Dtype::kBFloat16})
      for (const char* rules : {"", kComposedAlone})
        for (const bool create_graph : {false, true}) run_on(device, dtype, rules, create_graph);
}

// What is not a number shows in the same places on every device: here of the second query, in the
// keys that it attends to, and of a key, in all queries that attend to it.
TEST(CudaAttention, NumbersThatAreNoneAreWhereTheCpuHasThem) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16}) {
    for (const bool of_key : {false, true}) {
      for (const std::optional<double> softcap : {std::optional<double>(), std::optional(3.0)}) {
        Arrays places[2];
        for (const Device device : {cpu(0), gpu}) {
          const auto drawn = [&](uint64_t seed) {
            return moved(
                testing::random_array({1, 2, 70, 16}, -1, 1, Dtype::kFloat32, cpu(0), seed), device,
                dtype);
          };
          const Array q = drawn(1), k = drawn(2);
          // As arithmetic makes it: another NaN than that of std::nan.
          const Array none = zeros({1}, {dtype, device}) / zeros({1}, {dtype, device});
          (of_key ? k : q).at({0, 0, of_key ? 40 : 1, Slice(3, 4)}).assign(none);
          const Variable x(q), y(k), z(drawn(3));
          const auto result =
              F::attention_with_statistics(x, y, z, {.causal = true, .softcap = softcap});
          result.y.set_grad(drawn(4));
          result.y.backward();
          // Products with weights of 0 may make more of them, of keys or queries in the same tile.
          const Array own = of_key ? y.grad() : x.grad();
          for (const Array& a : {result.y.data(), result.log_sum_exp.data(), own, z.grad()})
            places[device.is_cuda()].push_back(isnan(a).to_cpu());
        }
        for (size_t i = 0; i < places[0].size(); ++i)
          EXPECT_TRUE(all(equal(places[0][i], places[1][i])).truth())
              << dtype << ' ' << of_key << ' ' << softcap.has_value() << ' ' << i;
      }
    }
  }
}

// Operands that are broadcast or reversed, scales that are not positive, and gradients that are
// slices of one array, as of a projection to all three.
TEST(CudaAttention, LayoutsAndScales) {
  CATENA_NEEDS_GPU();
  const auto results_on = [](Device device, double scale) {
    const auto drawn = [&](const Shape& shape, uint64_t seed) {
      return testing::random_array(shape, -1, 1, Dtype::kFloat32, cpu(0), seed).to(device);
    };
    const Variable q(drawn({2, 4, 66, 16}, 1).at({Slice(none, none, -1)})),
        k(drawn({1, 4, 90, 16}, 2).broadcast_to({2, 4, 90, 16})),
        v(drawn({2, 1, 90, 16}, 3).broadcast_to({2, 4, 90, 16}));
    const Variable y = F::scaled_dot_product_attention(
        q, k, v, {.causal = true, .scale = scale, .query_start = array({7, 60}).to(device)});
    y.set_grad(drawn(y.shape(), 4));
    y.backward();
    const Variable packed(drawn({2, 33, 3, 2, 16}, 5));
    const Variable rows = F::reshape(packed, {2, 33, 96});
    Variables parts = F::split_axis(rows, 3, 2);
    for (Variable& part : parts)
      part = F::transpose(F::reshape(part, {2, 33, 2, 16}), {0, 2, 1, 3});
    const Variable z = F::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    z.set_grad(drawn({2, 2, 33, 16}, 6));
    z.backward();
    return Arrays{y.data(), q.grad(), k.grad(), v.grad(), z.data(), packed.grad()};
  };
  for (const double scale : {0.3, 0.0, -0.5}) {
    const Arrays expected = results_on(cpu(0), scale), got = results_on(cuda_device(0), scale);
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(message(scale, ' ', i));
      assert_allclose(got[i].to_cpu(), expected[i], 1e-4, 1e-5);
    }
  }
}

// Numbers that overflow sums of positions, and scores that only -inf forbids.
void expect_limits(Device device) {
  const DeviceScope on(device);
  const auto drawn = [&](int64_t rows, uint64_t seed) {
    return testing::random_array({1, 1, rows, 4}, -1, 1, Dtype::kFloat32, cpu(0), seed).to(device);
  };
  const Array q = drawn(3, 1), k = drawn(5, 2);
  const auto of = [&](const F::AttentionOptions& o) {
    return F::scaled_dot_product_attention(q, k, k, o).data();
  };
  for (const char* rules : {"", kComposedAlone}) {
    const ProviderScope scope(rules);
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    assert_allclose(of({.window = kMost}), of({}), 1e-6, 1e-6);
    constexpr int32_t kFar = std::numeric_limits<int32_t>::max();
    assert_allclose(of({.causal = true, .query_start = array({kFar}).to(device)}), of({}), 1e-6,
                    1e-6);
    assert_allclose(of({.causal = true, .query_start = array({-kFar}).to(device)}),
                    zeros({1, 1, 3, 4}, {Dtype::kFloat32, device}), 0, 0);
  }
  Arrays gradients[2];
  const Array bias = zeros({3, 5}, {Dtype::kFloat32, device});
  bias(0).fill(std::numeric_limits<float>::lowest());
  for (const bool create_graph : {false, true}) {
    const Variable v(k);
    F::sum(F::square(F::scaled_dot_product_attention(q, k, v, {.bias = bias})))
        .backward({.create_graph = create_graph});
    gradients[create_graph] = {v.grad()};
  }
  assert_allclose(gradients[1][0], gradients[0][0], 1e-5, 1e-6);
}
TEST(Attention, LimitsOfNumbers) {
  for (const Device device : devices()) expect_limits(device);
}

}  // namespace
}  // namespace catena
