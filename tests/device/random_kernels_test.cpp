// The CUDA kernel of dropout, run on the host, against the provider of the CPU.
#include <gtest/gtest.h>

#include <vector>

#include "backends/cuda/random/random.h"
#include "catena/array/creation.h"
#include "catena/kernels/random.h"
#include "catena/testing.h"

namespace catena {
namespace {

using gpu::Float;

constexpr RandomBits kBits{99, 12345, nullptr};
constexpr double kRatio = 0.4;

struct Type {
  Dtype dtype;
  Float code;
};
constexpr Type kTypes[] = {{Dtype::kFloat16, Float::kF16},
                           {Dtype::kBFloat16, Float::kBf16},
                           {Dtype::kFloat32, Float::kF32},
                           {Dtype::kFloat64, Float::kF64}};

// Of the last n elements of x; the elements in front of them stay 7.
Array dropped(const Array& x, int64_t n, const Type& type, uint64_t seed = kBits.seed) {
  const Array y = full(x.shape(), 7, {x.dtype(), cpu()});
  const int64_t skipped = (x.size() - n) * int64_t(x.itemsize());
  const gpu::DropoutArgs args{{seed, kBits.offset, nullptr},
                              static_cast<const char*>(x.raw_data()) + skipped,
                              static_cast<char*>(y.raw_data()) + skipped,
                              n,
                              kRatio,
                              1 / (1 - kRatio)};
  gpu::launch_dropout(type.code, args, {nullptr, 1, 0, false});
  return y;
}

TEST(RandomKernels, DropoutIsTheCpusBitForBit) {
  for (const Type& type : kTypes)
    for (const int64_t n : {1, 3, 4, 5, 7, 8, 9, 1024, 1037, 70001}) {
      const Array x = testing::random_array({n}, -2, 2, type.dtype, cpu(), 3);
      const Array y = Array::uninitialized({n}, type.dtype, cpu());
      kernels::dropout(cpu(), {x, kRatio, 1 / (1 - kRatio), kBits, y});
      EXPECT_EQ(testing::difference(dropped(x, n, type), y, 0, 0), "") << type.dtype << ", " << n;
      EXPECT_EQ(n < 1024 || testing::difference(dropped(x, n, type, 98), y, 0, 0) != "", true);
    }
}

// The first element is then not on a border of 16 bytes.
TEST(RandomKernels, DropoutOfElementsInTheMiddle) {
  for (const Type& type : kTypes)
    for (const int64_t skip : {1, 2, 3}) {
      constexpr int64_t n = 1003;
      const Array x = testing::random_array({skip + n}, -2, 2, type.dtype, cpu(), 3);
      const std::vector<double> all = dropped(x, n, type).to_vector<double>();
      const std::vector<double> in = x.to_vector<double>();
      const Array rest = array(std::vector<double>(in.begin() + skip, in.end())).astype(type.dtype);
      const std::vector<double> expected = dropped(rest, n, type).to_vector<double>();
      for (int64_t i = 0; i < skip; ++i) EXPECT_EQ(all[size_t(i)], 7);
      EXPECT_EQ(std::vector<double>(all.begin() + skip, all.end()), expected) << type.dtype;
    }
}

}  // namespace
}  // namespace catena
