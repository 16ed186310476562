// Random numbers at the level of bits: Philox against published answers, the mapping of blocks to
// elements, and moments of the distributions.
#define CATENA_FN inline
#include "device/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/core/config.h"
#include "catena/kernels/random.h"

namespace catena {
namespace {

struct KnownAnswer {
  unsigned counter[4], key[2], expected[4];
};

// The vectors of Random123 for philox4x32, 10 rounds (kat_vectors).
TEST(Philox, KnownAnswers) {
  const KnownAnswer answers[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const KnownAnswer& a : answers) {
    const philox::Block b = philox::block(a.counter, a.key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(b.word[i], a.expected[i]);
  }
}

TEST(Philox, ScaledIsTheHighHalfOfTheProduct) {
  const uint64_t values[] = {0, 1, 0xffffffff, 0x100000000, 0x123456789abcdef0, ~uint64_t{0}};
  for (uint64_t bits : values) {
    for (uint64_t range : values) {
      const uint64_t expected = range == 0 ? bits : uint64_t((unsigned __int128)(bits)*range >> 64);
      EXPECT_EQ(philox::scaled(bits, range), expected);
    }
  }
}

constexpr uint64_t kSeed = 0x0123456789abcdef,
                   kOffset = 0xfffffff0;  // the counter's high word changes within
constexpr int64_t kBitsCount = 1037;

philox::Block block_of(int64_t i) { return philox::block(kSeed, kOffset + uint64_t(i)); }

Array draw(RandomKind kind, Dtype dtype, double low, double high, int64_t ilow = 0,
           uint64_t range = 0, int64_t n = kBitsCount) {
  Array out = Array::uninitialized({n}, dtype, cpu(0));
  RandomCall call{kind, {kSeed, kOffset, nullptr}, low, high, ilow, range, &out};
  kernels::random(cpu(0), call);
  return out;
}

TEST(RandomBlocks, Bits64UseTwoElementsABlock) {
  for (int64_t n : {int64_t{1}, int64_t{2}, kBitsCount}) {
    const Array a = draw(RandomKind::kBits64, Dtype::kUInt64, 0, 1, 0, 0, n);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(a.data<uint64_t>()[i], philox::bits64(block_of(i / 2), int(i % 2)));
    }
  }
}

uint64_t bits_of(int64_t i) { return philox::bits64(block_of(i / 2), int(i % 2)); }
double u53_of(int64_t i) { return double(bits_of(i) >> 11) / 9007199254740992.0; }
double u24_of(int64_t i) { return double(block_of(i / 4).word[i % 4] >> 8) / 16777216; }

TEST(RandomBlocks, UniformOfEveryDtype) {
  for (int64_t n : {int64_t{1}, int64_t{3}, int64_t{64}, int64_t{1024}, kBitsCount}) {
    const Array f = draw(RandomKind::kUniform, Dtype::kFloat32, -2, 3, 0, 0, n),
                d = draw(RandomKind::kUniform, Dtype::kFloat64, -2, 3, 0, 0, n),
                h = draw(RandomKind::kUniform, Dtype::kFloat16, -2, 3, 0, 0, n);
    for (int64_t i = 0; i < n; ++i) {
      const float u24 = float(u24_of(i));
      ASSERT_EQ(f.data<float>()[i], -2.0f + 5.0f * u24);
      ASSERT_EQ(d.data<double>()[i], -2.0 + 5.0 * u53_of(i));
      ASSERT_EQ(h.data<float16>()[i].bits, float16(-2.0f + 5.0f * u24).bits);
    }
  }
}

TEST(RandomBlocks, NormalIsBoxMullerOnPairs) {
  const double pi = std::acos(-1.0);
  const auto expected = [&](double (*u)(int64_t), int64_t i) {
    const int64_t pair = i / 2 * 2;
    const double r = std::sqrt(-2 * std::log(1 - u(pair))), angle = 2 * pi * u(pair + 1);
    return 1 + 2 * r * (i % 2 ? std::sin(angle) : std::cos(angle));
  };
  for (int64_t n : {int64_t{1}, int64_t{3}, int64_t{64}, int64_t{1024}, kBitsCount}) {
    const Array f = draw(RandomKind::kNormal, Dtype::kFloat32, 1, 2, 0, 0, n),
                d = draw(RandomKind::kNormal, Dtype::kFloat64, 1, 2, 0, 0, n);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(f.data<float>()[i], expected(&u24_of, i), 6e-6);
      ASSERT_NEAR(d.data<double>()[i], expected(&u53_of, i), 1e-14);
    }
  }
}

TEST(RandomBlocks, IntegersAndBernoulli) {
  const Array n = draw(RandomKind::kIntegers, Dtype::kInt64, 0, 1, -7, 1000),
              all = draw(RandomKind::kIntegers, Dtype::kUInt64, 0, 1, 0, 0);
  const Array small = draw(RandomKind::kIntegers, Dtype::kInt8, 0, 1, -128, 256),
              b = draw(RandomKind::kBernoulli, Dtype::kBool, 0, 0.3);
  for (int64_t i = 0; i < kBitsCount; ++i) {
    const uint64_t bits = bits_of(i);
    ASSERT_EQ(n.data<int64_t>()[i], int64_t((unsigned __int128)(bits)*1000 >> 64) - 7);
    ASSERT_EQ(all.data<uint64_t>()[i], bits);
    ASSERT_EQ(small.data<int8_t>()[i], int8_t(int64_t(bits >> 56) - 128));
    ASSERT_EQ(b.data<bool>()[i], u53_of(i) < 0.3);
  }
}

TEST(RandomBlocks, ABaseOnTheDeviceGivesTheSeedAndAddsToTheOffset) {
  const Array base = array({uint64_t{kSeed}, uint64_t{kOffset - 5}});
  const RandomBits bits{kSeed + 1, 5, &base}, same{kSeed, kOffset, nullptr};
  const auto uniform = [&](const RandomBits& from) {
    const Array out = Array::uninitialized({kBitsCount}, Dtype::kFloat32, cpu(0));
    kernels::random(cpu(0), {RandomKind::kUniform, from, 0, 1, 0, 0, &out});
    return out.to_vector<float>();
  };
  EXPECT_EQ(uniform(bits), uniform(same));
  const auto permutation = [&](const RandomBits& from) {
    const Array out = Array::uninitialized({kBitsCount}, Dtype::kInt64, cpu(0));
    kernels::permutation(cpu(0), {from, out});
    return out.to_vector<int64_t>();
  };
  EXPECT_EQ(permutation(bits), permutation(same));
  const auto dropout = [&](const RandomBits& from) {
    const Array x = ones({kBitsCount}, Dtype::kFloat32), y = empty_like(x);
    kernels::dropout(cpu(0), {x, 0.25, 2, from, y});
    return y.to_vector<float>();
  };
  EXPECT_EQ(dropout(bits), dropout(same));
}

TEST(RandomBlocks, TheNumberOfThreadsDoesNotMatter) {
  const int before = cpu_threads();
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2, 7}) {
    set_cpu_threads(threads);
    results.push_back(
        draw(RandomKind::kNormal, Dtype::kFloat32, 0, 1, 0, 0, 100003).to_vector<float>());
  }
  set_cpu_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(RandomBlocks, PermutationSortsByBits) {
  const Array p = Array::uninitialized({kBitsCount}, Dtype::kInt64, cpu(0));
  kernels::permutation(cpu(0), {RandomBits{kSeed, kOffset, nullptr}, p});
  std::vector<int64_t> expected(size_t{kBitsCount});
  std::iota(expected.begin(), expected.end(), 0);
  std::sort(expected.begin(), expected.end(), [](int64_t a, int64_t b) {
    return philox::bits64(block_of(a), 0) < philox::bits64(block_of(b), 0);
  });
  EXPECT_EQ(p.to_vector<int64_t>(), expected);
}

TEST(RandomBlocks, DropoutTakesAWordForEachElement) {
  for (Dtype d : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16}) {
    const Array x = draw(RandomKind::kUniform, d, 1, 2),
                y = Array::uninitialized({kBitsCount}, d, cpu(0));
    kernels::dropout(cpu(0), {x, 0.25, 2, RandomBits{kSeed, 3, nullptr}, y});
    const std::vector<double> in = x.to_vector<double>(), out = y.to_vector<double>();
    for (int64_t i = 0; i < kBitsCount; ++i) {
      const philox::Block block = philox::block(kSeed, uint64_t(3 + i / 4));
      const bool keep = philox::unit24(block.word[i % 4]) >= 0.25f;
      ASSERT_EQ(out[size_t(i)], keep ? 2 * in[size_t(i)] : 0) << name(d);
    }
  }
}

}  // namespace
}  // namespace catena
