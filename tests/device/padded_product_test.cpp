// Products of odd extents from copies, on the host: the library and the memory of a GPU are
// replaced, the kernel of the copies runs one thread after the other.
#include <gtest/gtest.h>

#include <vector>

#include "backends/cuda/matmul/padding.h"
#include "backends/cuda/runtime/memory_pools.h"
#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/array/linalg.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/core/memory.h"

namespace catena::gpu {
namespace {

std::vector<LibraryProduct> g_products;  // of the library
int64_t g_scratch;                       // bytes of all allocations

// Matrix i as an array of rows, each of which is a column in memory, transposed on request.
Array view(const LibraryMatrix& m, int64_t i, int64_t rows, int64_t columns, Dtype dtype) {
  if (m.transposed) std::swap(rows, columns);
  char* const begin = static_cast<char*>(m.data) + i * m.batch_step * int64_t(itemsize(dtype));
  const Array lines = borrow_array(begin, {columns, m.leading}, dtype)(Slice(), Slice(0, rows));
  return m.transposed ? lines.T() : lines;
}

}  // namespace

bool direct_matmul(Dtype dtype, Precision, const LibraryProduct& p, int, cudaStream_t) {
  g_products.push_back(p);
  const auto read = [](const Array& a) { return a.astype(Dtype::kFloat32); };
  for (int64_t i = 0; i < p.batch; ++i) {
    const Array c = view(p.c, i, p.rows, p.columns, p.wide ? Dtype::kFloat32 : dtype);
    Array result = matmul(read(view(p.b, i, p.depth, p.columns, dtype)),
                          read(view(p.a, i, p.rows, p.depth, dtype)));
    if (p.bias) result = result + read(borrow_array(const_cast<void*>(p.bias), {p.rows}, dtype));
    if (p.activation == LibraryActivation::kRelu) result = maximum(result, 0.0f);
    if (p.accumulate) result = result + read(c);
    c.assign(result.astype(c.dtype()));
  }
  return true;
}

StoragePtr allocate_device(int, size_t bytes) {
  g_scratch += int64_t(bytes);
  return allocate(cpu(), bytes);
}

void check_launch(const char*) {}

namespace {

struct Case {
  int64_t rows, columns, depth, batch = 1;
  bool a = true, b = false;  // whether they are transposed
  bool bias = false, accumulate = false, wide = false, one_a = false, one_b = false;
  int64_t apart = 0;  // numbers behind each column
};

// Small integers, whose sums are exact.
Array integers(int64_t count, Dtype dtype) { return random::randint(-2, 3, {count}).astype(dtype); }

class PaddedProducts : public ::testing::TestWithParam<Dtype> {
 protected:
  ~PaddedProducts() override { config().max_workspace_size = workspace_; }

  // The library product of new operands, whose memory is kept.
  LibraryProduct product_of(const Case& k) {
    LibraryProduct p{};
    p.rows = k.rows, p.columns = k.columns, p.depth = k.depth, p.batch = k.batch;
    p.wide = k.wide, p.accumulate = k.accumulate;
    p.a = matrix(k, k.rows, k.depth, k.a, k.one_a, GetParam());
    p.b = matrix(k, k.depth, k.columns, k.b, k.one_b, GetParam());
    p.c = matrix(k, k.rows, k.columns, false, false, k.wide ? Dtype::kFloat32 : GetParam());
    if (!k.bias) return p;
    memory_.push_back(integers(k.rows, GetParam()));
    p.bias = memory_.back().raw_data();
    p.activation = LibraryActivation::kRelu;
    return p;
  }

  // Equal to the library's own result, in the memory beside it too.
  void check(const Case& k) {
    const LibraryProduct p = product_of(k);
    const Array result = memory_[2], before = result.copy();
    direct_matmul(GetParam(), Precision::kTf32, p, 0, nullptr);
    const Array expected = result.copy();
    result.assign(before);
    g_products.clear(), g_scratch = 0;
    EXPECT_TRUE(library_matmul(GetParam(), Precision::kTf32, p, 0, nullptr));
    EXPECT_TRUE(array_equal(result, expected));
    EXPECT_TRUE(is_whole(g_products.front()));
    memory_.clear();
  }

 private:
  LibraryMatrix matrix(const Case& k, int64_t rows, int64_t columns, bool transposed, bool one,
                       Dtype dtype) {
    if (transposed) std::swap(rows, columns);
    const int64_t leading = rows + k.apart, step = one ? 0 : leading * columns;
    memory_.push_back(integers(leading * columns * (one ? 1 : k.batch), dtype));
    return {memory_.back().raw_data(), leading, step, transposed};
  }
  bool is_whole(const LibraryProduct& p) const {
    const Packs packs = packs_of(GetParam(), p.wide);
    const auto begins = [&](const LibraryMatrix& m, int64_t pack) {
      return reinterpret_cast<uintptr_t>(m.data) % 16 == 0 && m.leading % pack == 0 &&
             m.batch_step % pack == 0;
    };
    return begins(p.a, packs.operand) && begins(p.b, packs.operand) && begins(p.c, packs.result) &&
           p.rows % packs.operand == 0 && (!p.b.transposed || p.columns % packs.operand == 0) &&
           ((!p.a.transposed && p.b.transposed) || p.depth % packs.operand == 0);
  }

  std::vector<Array> memory_;  // of a, b, c and the bias
  const size_t workspace_ = config().max_workspace_size;
};

TEST_P(PaddedProducts, EachLayout) {
  for (const bool a : {false, true})
    for (const bool b : {false, true})
      check({.rows = 1401, .columns = 1403, .depth = 1405, .a = a, .b = b});
}

TEST_P(PaddedProducts, DistancesAlone) {
  check({.rows = 1600, .columns = 1600, .depth = 1600, .apart = 3});
}

TEST_P(PaddedProducts, BiasAndSum) {
  check({.rows = 1801, .columns = 1700, .depth = 1700, .bias = true});
  check({.rows = 1801, .columns = 1700, .depth = 1700, .b = true, .accumulate = true});
}

TEST_P(PaddedProducts, WideResults) {
  if (itemsize(GetParam()) > 2) GTEST_SKIP() << "results of 16-bit operands";
  check({.rows = 1801, .columns = 1700, .depth = 1700, .accumulate = true, .wide = true});
}

// It gets no columns more.
TEST_P(PaddedProducts, ResultInPlace) {
  check({.rows = 1600, .columns = 1403, .depth = 1405});
  EXPECT_EQ(g_products.size(), 1u);
  EXPECT_EQ(g_products.front().columns, 1403);
}

// The last columns are no part of the copies.
TEST_P(PaddedProducts, ColumnsOfAnOperandAlone) {
  check({.rows = 512, .columns = 2405, .depth = 2405, .a = false, .b = true});
  EXPECT_EQ(g_products.size(), 2u);
}

TEST_P(PaddedProducts, ColumnsInParts) {
  config().max_workspace_size = 3000000 * itemsize(GetParam());
  for (const bool b : {false, true}) {
    check({.rows = 801, .columns = 4001, .depth = 1001, .b = b});
    EXPECT_EQ(g_products.size(), 4u);
    EXPECT_GT(g_scratch, int64_t(config().max_workspace_size));
  }
}

TEST_P(PaddedProducts, MatricesInParts) {
  config().max_workspace_size = 10000000 * itemsize(GetParam());
  for (const auto& [one_a, one_b] : {std::pair{false, false}, {true, false}, {false, true}})
    check(
        {.rows = 1003, .columns = 1001, .depth = 1801, .batch = 3, .one_a = one_a, .one_b = one_b});
  EXPECT_EQ(g_products.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, PaddedProducts,
                         ::testing::Values(Dtype::kFloat32, Dtype::kBFloat16),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace catena::gpu
