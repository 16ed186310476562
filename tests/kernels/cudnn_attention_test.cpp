// cuDNN's provider of attention: what it takes, against the composed provider in float64.
#include <gtest/gtest.h>

#include "catena/core/config.h"
#include "catena/core/error.h"
#include "catena/testing_markers.h"
#include "deterministic_scope.h"
#include "kernels/attention_case.h"

namespace catena {
namespace {

using testing::Case;
using testing::Dice;
using testing::expect_like_composed;
using testing::kTypes;
using testing::laid_out;
using testing::Type;

// cuDNN alone: a call that it declines is an error.
constexpr const char* kCudnnAlone = "attention/cudnn:only,attention_grad/cudnn:only";
constexpr const char* kCudnnWherever = "attention/cudnn:always,attention_grad/cudnn:always";

Case drawn_by_causality(uint64_t seed, Dtype dtype) {
  Dice dice(seed);
  Case c;
  c.options.causal = dice.one_in(2);
  const int64_t depth = dice.of<int64_t>({8, 32, 64, 80, 128}),
                keys = dice.of<int64_t>({2, 63, 64, 128, 129, 197, 300}),
                queries = c.options.causal ? keys : dice.of<int64_t>({2, 65, 128, 197}),
                groups = 1 + dice.below(3), heads = groups * (1 + dice.below(3)),
                batch = 1 + dice.below(3);
  const double size = dice.one_in(4) ? 20 : 1;  // large scores
  uint64_t stream = seed * 16;
  const auto numbers = [&](int64_t of_heads, int64_t rows, double most) {
    return testing::random_array({batch, of_heads, rows, depth}, -most, most, Dtype::kFloat64,
                                 cpu(0), stream++)
        .astype(dtype);
  };
  c.q = laid_out(numbers(heads, queries, size), dice.below(3));
  c.k = laid_out(numbers(groups, keys, 2), dice.below(3));
  c.v = laid_out(numbers(groups, keys, 2), dice.below(3));
  c.gy = numbers(heads, queries, 2);
  return c;
}

TEST(CudnnAttention, RandomCasesByCausality) {
  CATENA_NEEDS_CUDNN();
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Type& type = kTypes[2 + seed % 2];
    SCOPED_TRACE(message("seed ", seed, ", ", type.dtype));
    const Case c = drawn_by_causality(seed, type.dtype);
    const ProviderScope cudnn(kCudnnAlone);
    expect_like_composed(c, type, cuda_device(0));
  }
}

// All scores are -120.
Case of_low_scores(int64_t queries, int64_t keys, bool causal) {
  const auto numbers = [batch = 2](int64_t rows, double number) {
    return full({batch, 3, rows, 64}, number, {Dtype::kBFloat16, cpu(0)});
  };
  Case c;
  c.options.causal = causal;
  c.q = numbers(queries, 2);
  c.k = numbers(keys, -7.5);
  c.v = numbers(keys, 1);
  c.gy = numbers(queries, 1);
  return c;
}

// Kernels that read what is behind the last key gave NaN there.
TEST(CudnnAttention, ReadsNothingBehindTheLastKey) {
  CATENA_NEEDS_CUDNN();
  const ProviderScope cudnn(kCudnnAlone);
  for (const bool causal : {false, true})
    for (const auto& [queries, keys] :
         {std::pair<int64_t, int64_t>{70, 192}, {197, 197}, {3, 300}}) {
      if (causal && queries != keys) continue;
      SCOPED_TRACE(message(queries, ' ', keys, ' ', causal));
      expect_like_composed(of_low_scores(queries, keys, causal), kTypes[3], cuda_device(0));
    }
}

// What cuDNN gets wrong, or may not compute, is left to others.
TEST(CudnnAttention, LeavesWhatItHasWrong) {
  CATENA_NEEDS_CUDNN();
  const ProviderScope wherever(kCudnnWherever);
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{1, 256}, {256, 1}}) {
    SCOPED_TRACE(message(queries, ' ', keys));
    expect_like_composed(of_low_scores(queries, keys, false), kTypes[3], cuda_device(0));
  }
}

// Under config().deterministic gradients of all scores are in the workspace.
class CudnnOrderedAttention : public ::testing::Test {
 protected:
  void SetUp() override { CATENA_NEEDS_CUDNN(); }
  void TearDown() override { config().max_workspace_size = workspace_; }

  const size_t workspace_ = config().max_workspace_size;
  const DeterministicScope deterministic_;
  const ProviderScope cudnn_{kCudnnAlone};
};

TEST_F(CudnnOrderedAttention, RandomCases) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Type& type = kTypes[2 + seed % 2];
    SCOPED_TRACE(message("seed ", seed, ", ", type.dtype));
    expect_like_composed(drawn_by_causality(seed, type.dtype), type, cuda_device(0));
  }
}

// Calls whose gradients of scores do not fit into the workspace are computed in parts: of entries
// of the batch, and of groups where one entry is too large. Parts may differ in size.
TEST_F(CudnnOrderedAttention, InParts) {
  constexpr int64_t kRows = 512, kWidth = 64, kGroups = 3, kHeads = 2 * kGroups;
  // Bytes of two heads: gradients of scores, and those of keys and values in float32.
  constexpr size_t kGroup = 2 * kRows * (kRows * 2 + 2 * kWidth * 4);
  uint64_t stream = 1;
  const auto numbers = [&](int64_t heads) {
    const Array drawn =
        testing::random_array({5, heads, kRows, kWidth}, -2, 2, Dtype::kFloat64, cpu(0), stream++);
    return laid_out(drawn.astype(Dtype::kBFloat16), 1);
  };
  Case c;
  c.q = numbers(kHeads), c.k = numbers(kGroups), c.v = numbers(kGroups), c.gy = numbers(kHeads);
  for (const size_t groups : {1, 2, 3, 6, 12, 15}) {
    SCOPED_TRACE(message(groups, " groups at once"));
    // What a plan needs besides has room, and a further group has not.
    config().max_workspace_size = (groups * 10 + 9) * kGroup / 10 * 16 / 15;
    expect_like_composed(c, kTypes[3], cuda_device(0));
  }
  config().max_workspace_size = kGroup / 2;
  EXPECT_THROW(testing::run(c, cuda_device(0), Dtype::kBFloat16), DeviceError);
}

TEST_F(CudnnOrderedAttention, EqualCallsGiveEqualBits) {
  uint64_t stream = 1;
  const auto numbers = [&](int64_t heads, int64_t rows) {
    return testing::random_array({4, heads, rows, 64}, -2, 2, Dtype::kFloat64, cpu(0), stream++)
        .astype(Dtype::kBFloat16);
  };
  for (const int64_t keys : {1024, 197})
    for (const bool causal : {true, false}) {
      Case c;
      c.q = numbers(8, keys), c.k = numbers(4, keys), c.v = numbers(4, keys),
      c.gy = numbers(8, keys);
      c.options.causal = causal;
      const Arrays first = testing::run(c, cuda_device(0), Dtype::kBFloat16);
      for (int round = 0; round < 100; ++round) {
        const Arrays again = testing::run(c, cuda_device(0), Dtype::kBFloat16);
        for (size_t i = 0; i < first.size(); ++i)
          ASSERT_TRUE(all(equal(first[i], again[i])).truth()) << testing::kResults[i];
      }
    }
}

}  // namespace
}  // namespace catena
