// The CUDA kernels of the gradients of prelu, run on threads of the host, against the provider of
// the CPU.
#include <gtest/gtest.h>

#include <vector>

#include "backends/cuda/activation/prelu.h"
#include "catena/array/creation.h"
#include "catena/kernels/prelu.h"
#include "catena/testing.h"

namespace catena {
namespace {

using gpu::Float;
using testing::random_array;

struct Case {
  Shape shape;  // (outer, channels, inner)
  int64_t parts;
};
// Planes of packs, of single elements and of several segments; channels last of one block column,
// of several, and of few channels.
const Case kCases[] = {{{2, 3, 256}, 2}, {{2, 2, 131}, 2}, {{1, 1, 33000}, 3}, {{300, 8, 1}, 8},
                       {{70, 13, 1}, 3}, {{9, 70, 1}, 1},  {{600, 1, 1}, 8}};

struct Type {
  Dtype dtype;
  Float code;
  double error;
};
class PreluKernels : public ::testing::TestWithParam<Type> {};

TEST_P(PreluKernels, ComputeWhatTheCpuDoes) {
  const auto [dtype, code, error] = GetParam();
  const gpu::Launch launch{nullptr, 1, 0, false};
  for (const auto& [shape, parts] : kCases)
    for (const bool aligned : {true, false}) {
      if (!aligned && shape[2] != 256) continue;
      const Array x = random_array(shape, -2, 2, dtype, cpu(), 3);
      const Array gy = random_array(shape, 0.5, 1.5, dtype, cpu(), 4);
      const Array W = random_array({shape[1]}, -1, 1, dtype, cpu(), 5);
      const Array gx = zeros(shape, {dtype, cpu()}), gW = zeros(W.shape(), {dtype, cpu()});
      const Array own_gx = zeros(shape, {dtype, cpu()}), own_gW = zeros(W.shape(), {dtype, cpu()});
      kernels::prelu_grad(cpu(), {x, gy, W, gx, gW});
      gpu::PreluGradArgs args{x.raw_data(),      gy.raw_data(),     W.raw_data(),
                              own_gx.raw_data(), own_gW.raw_data(), shape[0],
                              shape[1],          shape[2],          aligned};
      args.parts = gpu::prelu_grad_parts(args, launch);
      EXPECT_EQ(args.parts, parts) << shape;
      std::vector<double> partials(size_t(args.parts * shape[1]), 7);
      args.partials = partials.data();
      gpu::launch_prelu_grad(code, args, launch);
      EXPECT_EQ(testing::difference(own_gx, gx, 0, 0), "") << shape;
      EXPECT_EQ(testing::difference(own_gW, gW, error, error * double(shape[0] * shape[2])), "")
          << shape;
    }
}

// Planes so small that a block's threads would idle are left to others.
TEST(PreluGradParts, LeaveSmallPlanes) {
  gpu::PreluGradArgs args{};
  args.outer = 64, args.channels = 32, args.inner = 49;
  EXPECT_EQ(gpu::prelu_grad_parts(args, {nullptr, 132, 0, true}), 0);
  args.inner = 128;
  EXPECT_EQ(gpu::prelu_grad_parts(args, {nullptr, 132, 0, true}), 64);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, PreluKernels,
                         ::testing::Values(Type{Dtype::kFloat16, Float::kF16, 2e-3},
                                           Type{Dtype::kBFloat16, Float::kBf16, 1.6e-2},
                                           Type{Dtype::kFloat32, Float::kF32, 1e-6},
                                           Type{Dtype::kFloat64, Float::kF64, 1e-13}));

}  // namespace
}  // namespace catena
