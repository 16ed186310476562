// Index arithmetic of the kernels, on the host.
#include "backends/cuda/jit/host_args.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace catena::jit {
namespace {

TEST(Divider, DividesEveryNumberBelow2To31) {
  std::mt19937 random(7);
  std::vector<uint32_t> divisors{1,     2,          3,          5,          7,
                                 10,    641,        65535,      65536,      65537,
                                 16384, 0x3fffffff, 0x40000000, 0x7ffffffe, 0x7fffffff};
  for (int i = 0; i < 300; ++i)
    divisors.push_back(std::max(1u, uint32_t(random() >> (1 + random() % 30))));
  for (const uint32_t d : divisors) {
    const Divider divider = make_divider(d);
    std::vector<uint32_t> numbers{0, 1, d - 1, d, 0x7fffffff, 0x7ffffffe};
    for (uint64_t multiple = d; multiple < 0x80000000u;
         multiple += uint64_t(d) * (1 + (0x80000000u / d) / 50)) {
      numbers.insert(numbers.end(), {uint32_t(multiple - 1), uint32_t(multiple),
                                     uint32_t(multiple + 1) & 0x7fffffff});
    }
    for (int i = 0; i < 100; ++i) numbers.push_back(random() >> 1);
    for (const uint32_t n : numbers) {
      uint32_t remainder = 0;
      ASSERT_EQ(divide(n, divider, remainder), n / d) << n << " / " << d;
      ASSERT_EQ(remainder, n % d) << n << " % " << d;
    }
  }
}

TEST(FlatTile, TilesCoverEveryElementOnce) {
  constexpr int kTile = 64;
  for (const int64_t size : {1, 5, 63, 64, 65, 200, 640}) {
    for (const int64_t head : {0, 1, 3}) {
      if (head >= size) continue;
      std::vector<int> seen(size_t(size), 0);
      const int64_t blocks = (size - head + kTile - 1) / kTile + (head > 0);
      for (int64_t b = 0; b < blocks; ++b) {
        int64_t begin = -1;
        const int count = flat_tile(b, size, head, kTile, begin);
        if (b > 0 || head == 0) {
          EXPECT_EQ((begin - head) % kTile, 0) << "vectors would be misaligned";
        }
        for (int i = 0; i < count; ++i) ++seen.at(size_t(begin + i));
      }
      for (const int times : seen) ASSERT_EQ(times, 1) << "size " << size << " head " << head;
    }
  }
}

TEST(FlatPosition, ThreadsShareATileWithAndWithoutVectors) {
  constexpr int kThreads = 32, kVector = 4, kUnroll = 2;
  for (const bool vectors : {false, true}) {
    std::vector<int> seen(kThreads * kVector * kUnroll, 0);
    for (int t = 0; t < kThreads; ++t) {
      for (int e = 0; e < kVector * kUnroll; ++e) {
        const int at = flat_position(vectors, t, kThreads, e, kVector);
        ++seen.at(size_t(at));
        if (vectors && e % kVector == 0) {
          EXPECT_EQ(at % kVector, 0);
        }
      }
    }
    for (const int times : seen) ASSERT_EQ(times, 1);
  }
}

}  // namespace
}  // namespace catena::jit
