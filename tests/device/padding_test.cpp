// Which products of odd extents are computed by way of copies, and of what extents.
#include "backends/cuda/matmul/padding.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace catena {
namespace {

using gpu::LibraryProduct;
using gpu::Packs;
using gpu::Padding;

constexpr Packs kSixteenBits{8, 8}, kWide{8, 4}, kSingle{4, 4};

// Of matrices side by side in memory, in a batch too.
LibraryProduct product(int64_t rows, int64_t columns, int64_t depth, bool a, bool b,
                       int64_t batch = 1) {
  alignas(16) static char memory[16];
  LibraryProduct p{};
  p.rows = rows, p.columns = columns, p.depth = depth, p.batch = batch;
  p.a = {memory, a ? depth : rows, rows * depth, a};
  p.b = {memory, b ? columns : depth, depth * columns, b};
  p.c = {memory, rows, rows * columns, false};
  return p;
}

// The products of a linear layer of n outputs and k inputs at batch m, or of a stack of them.
LibraryProduct forward(int64_t m, int64_t n, int64_t k, int64_t stack = 1) {
  return product(n, m, k, true, false, stack);
}
LibraryProduct input_gradient(int64_t m, int64_t n, int64_t k, int64_t stack = 1) {
  return product(k, m, n, false, false, stack);
}
LibraryProduct weight_gradient(int64_t m, int64_t n, int64_t k, int64_t stack = 1) {
  return product(k, n, m, false, true, stack);
}

std::optional<Padding> decide(const LibraryProduct& p, const Packs& packs = kSixteenBits,
                              int64_t most_scratch = gpu::kMostScratch) {
  return gpu::padding_of(p, packs, most_scratch);
}

TEST(ProductPadding, WholePacksAreLeftAlone) {
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      EXPECT_FALSE(decide(product(4096, 4096, 4096, a, b)));
      EXPECT_FALSE(decide(product(4100, 4096, 4092, a, b), kSingle));
      EXPECT_TRUE(decide(product(4100, 4096, 4096, a, b)));
    }
}

TEST(ProductPadding, ExtentsThatDoNotLieAlongMemoryAreLeftAlone) {
  EXPECT_FALSE(decide(product(4096, 4097, 4096, false, false)));
  EXPECT_FALSE(decide(product(4096, 4096, 4097, false, true)));
}

TEST(ProductPadding, SmallProductsAndThinOnesAreLeftAlone) {
  EXPECT_FALSE(decide(product(1001, 1001, 1001, true, false)));
  EXPECT_TRUE(decide(product(1401, 1401, 1401, true, false)));
  EXPECT_FALSE(decide(product(50257, 16, 4097, true, false)));
  EXPECT_TRUE(decide(product(50257, 256, 4097, true, false)));
  EXPECT_FALSE(decide(product(5, 20000, 40000, false, true)));
  EXPECT_FALSE(decide(product(40000, 5, 20000, false, true)));
}

// As bench_gpu_matmul measured it: products of which each was faster from copies, or was not.
TEST(ProductPadding, CopiesPayWhereTheyDidOnAnH200) {
  for (const auto& product : {forward, input_gradient, weight_gradient}) {
    for (const Packs& packs : {kSixteenBits, kSingle}) {
      EXPECT_TRUE(decide(product(4096, 4095, 4097, 1), packs));
      EXPECT_TRUE(decide(product(32768, 50257, 768, 1), packs));
    }
    EXPECT_TRUE(decide(product(65536, 1280, 588, 1), kSixteenBits));
    EXPECT_FALSE(decide(product(65536, 1280, 588, 1), kSingle));
    EXPECT_FALSE(decide(product(197, 197, 64, 3072), kSingle));
  }
  EXPECT_FALSE(decide(forward(197, 197, 64, 3072)));
  EXPECT_FALSE(decide(input_gradient(197, 197, 64, 3072)));
  EXPECT_FALSE(decide(weight_gradient(197, 197, 64, 3072)));
}

// Results that are added to are copied to and fro.
TEST(ProductPadding, SumsAreCopiedTwice) {
  LibraryProduct p = product(8001, 8000, 256, true, false);
  EXPECT_TRUE(decide(p));
  p.accumulate = true;
  EXPECT_FALSE(decide(p));
}

// One matrix for a whole batch is copied once, those of a batch would take too long.
TEST(ProductPadding, OneMatrixForTheBatch) {
  LibraryProduct p = product(64, 4096, 1025, true, false, 100);
  EXPECT_FALSE(decide(p));
  p.b.batch_step = 0;
  EXPECT_TRUE(decide(p));
}

TEST(ProductPadding, AllExtentsOdd) {
  const auto padding = decide(product(4095, 4096, 4097, true, false));
  ASSERT_TRUE(padding);
  EXPECT_TRUE(padding->a && padding->b && padding->c && !padding->bias);
  EXPECT_EQ(padding->rows, 4096);
  EXPECT_EQ(padding->depth, 4104);
  EXPECT_EQ(padding->columns, 4096);
  EXPECT_EQ(padding->columns_of_part, 4096);
}

// The gradient of weights of an odd number of outputs: of columns that lie along memory in b alone,
// the last ones are a product of their own.
TEST(ProductPadding, ColumnsThatAreOddInAnOperandAlone) {
  const auto padding = decide(product(768, 50257, 32768, false, true), kWide);
  ASSERT_TRUE(padding);
  EXPECT_TRUE(!padding->a && padding->b && !padding->c && !padding->pads_columns);
  EXPECT_EQ(padding->columns, 50256);
  EXPECT_EQ(padding->columns_of_part % 8, 0);
}

TEST(ProductPadding, ColumnsArePaddedWhereTheResultIsCopied) {
  const auto padding = decide(product(1281, 5001, 4096, false, true));
  ASSERT_TRUE(padding);
  EXPECT_TRUE(padding->a && padding->b && padding->c && padding->pads_columns);
  EXPECT_EQ(padding->columns, 5001);
  EXPECT_EQ(padding->rows, 1288);
}

TEST(ProductPadding, TheBiasIsAsLongAsRows) {
  LibraryProduct p = product(4095, 4096, 4096, true, false);
  p.bias = p.a.data;
  EXPECT_TRUE(decide(p)->bias);
  p = product(4096, 4096, 4095, true, false);
  p.bias = p.a.data;
  EXPECT_FALSE(decide(p)->bias);
}

// Of the copies of a part.
int64_t scratch_of(const Padding& padding, int64_t columns_of_matrix) {
  const int64_t columns = std::min(padding.columns_of_part, gpu::up_to(8, columns_of_matrix));
  return 2 * padding.batch_of_part *
         (padding.a * padding.rows * padding.depth + padding.b * columns * padding.depth +
          padding.c * columns * padding.rows);
}

TEST(ProductPadding, PartsKeepScratchMemoryBounded) {
  const LibraryProduct layer = product(50257, 32768, 768, true, false);
  for (const int64_t most : {int64_t{256} << 20, int64_t{512} << 20}) {
    const auto padding = decide(layer, kSixteenBits, most);
    ASSERT_TRUE(padding);
    EXPECT_LE(scratch_of(*padding, layer.columns), most);
    EXPECT_GE(scratch_of(*padding, layer.columns), most / 2);
    EXPECT_EQ(padding->columns_of_part % 128, 0);
  }
  EXPECT_FALSE(decide(layer, kSixteenBits, int64_t{140} << 20));  // half of it for the weights
  EXPECT_FALSE(decide(layer, kSixteenBits, 0));
}

TEST(ProductPadding, PartsAreNotThin) {
  const LibraryProduct layer = weight_gradient(32768, 50257, 768);
  EXPECT_TRUE(decide(layer, kSixteenBits, int64_t{40} << 20));
  EXPECT_FALSE(decide(layer, kSixteenBits, int64_t{20} << 20));
}

TEST(ProductPadding, PartsOfABatch) {
  const LibraryProduct batch = product(1025, 1025, 1025, true, false, 500);
  const auto padding = decide(batch);
  ASSERT_TRUE(padding);
  EXPECT_LE(scratch_of(*padding, 1025), gpu::kMostScratch);
  EXPECT_GE(scratch_of(*padding, 1025), gpu::kMostScratch / 2);
  // Less than a matrix.
  const auto less = decide(batch, kSixteenBits, int64_t{5} << 20);
  ASSERT_TRUE(less);
  EXPECT_EQ(less->batch_of_part, 1);
  EXPECT_LT(less->columns_of_part, 1024);
  EXPECT_LE(scratch_of(*less, 1025), int64_t{5} << 20);
}

// Nothing is copied, if b's columns begin at whole packs and the last are left to another product.
TEST(ProductPadding, ColumnsThatEndWithinAPack) {
  LibraryProduct p = product(768, 5001, 4096, false, true);
  p.b.leading = 5008;
  const auto padding = decide(p);
  ASSERT_TRUE(padding);
  EXPECT_FALSE(padding->a || padding->b || padding->c);
  EXPECT_EQ(padding->columns, 5000);
  EXPECT_GE(padding->columns_of_part, 5000);
}

TEST(ProductPadding, AddressesAndDistances) {
  LibraryProduct p = product(4096, 4096, 4096, false, false);
  p.b.data = static_cast<char*>(p.b.data) + 2;
  EXPECT_TRUE(decide(p)->b && !decide(p)->a && !decide(p)->c);
  p = product(4096, 4096, 4096, false, false);
  p.c.leading = 4097;
  EXPECT_TRUE(decide(p)->c && !decide(p)->a && !decide(p)->b);
}

}  // namespace
}  // namespace catena
