// The CUDA kernels of gated activations and of rotary positions, run on threads of the host,
// against the providers of the CPU.
#include <gtest/gtest.h>

#include <vector>

#include "backends/cuda/activation/gated.h"
#include "backends/cuda/attention/rotary.h"
#include "catena/array/creation.h"
#include "catena/kernels/gated.h"
#include "catena/kernels/rotary.h"
#include "catena/testing.h"

namespace catena {
namespace {

using gpu::Float;
using testing::random_array;

struct Type {
  Dtype dtype;
  Float code;
  double error;
};
const Type kTypes[] = {{Dtype::kFloat16, Float::kF16, 2e-3},
                       {Dtype::kBFloat16, Float::kBf16, 1.6e-2},
                       {Dtype::kFloat32, Float::kF32, 2e-6},
                       {Dtype::kFloat64, Float::kF64, 1e-14}};
const gpu::Launch kLaunch{nullptr, 1, 0, false};

class GatedKernels : public ::testing::TestWithParam<Type> {};

// The gate is the first half of rows, and so is its gradient.
TEST_P(GatedKernels, ComputeWhatTheCpuDoes) {
  const auto [dtype, code, error] = GetParam();
  for (const int64_t columns : {32, 21})
    for (int f = 0; f < 3; ++f) {
      const ArrayOptions like{dtype, cpu()};
      const Array both = random_array({3, 2 * columns}, -5, 5, dtype, cpu(), 1),
                  x = random_array({3, columns}, -2, 2, dtype, cpu(), 2),
                  gy = random_array({3, columns}, -2, 2, dtype, cpu(), 3);
      const Array y = zeros(x.shape(), like), own = zeros(x.shape(), like);
      const int64_t wide = 2 * columns;
      kernels::gated(cpu(),
                     {GateFunction(f), 3, columns, {&both, wide}, {&x, columns}, {&y, columns}});
      gpu::GatedArgs args{};
      args.rows = 3, args.columns = columns, args.packed = columns == 32;
      args.gate = {both.raw_data(), wide}, args.x = {x.raw_data(), columns};
      args.y = {own.raw_data(), columns};
      gpu::launch_gated(code, gpu::Gated(f), args, kLaunch);
      EXPECT_EQ(testing::difference(own, y, error, error), "") << columns << " " << f;

      const Array g = zeros(both.shape(), like), gx = zeros(x.shape(), like),
                  own_g = zeros(both.shape(), like), own_gx = zeros(x.shape(), like);
      kernels::gated_grad(cpu(), {GateFunction(f),
                                  3,
                                  columns,
                                  {&both, wide},
                                  {&x, columns},
                                  {&gy, columns},
                                  {&g, wide},
                                  {&gx, columns}});
      args.y = {};
      args.gy = {gy.raw_data(), columns};
      args.g_gate = {own_g.raw_data(), wide}, args.gx = {own_gx.raw_data(), columns};
      gpu::launch_gated_grad(code, gpu::Gated(f), args, kLaunch);
      EXPECT_EQ(testing::difference(own_g, g, error, 4 * error), "") << columns << " " << f;
      EXPECT_EQ(testing::difference(own_gx, gx, error, error), "") << columns << " " << f;
      args.g_gate = {}, own_gx.fill(0.0);
      gpu::launch_gated_grad(code, gpu::Gated(f), args, kLaunch);
      EXPECT_EQ(testing::difference(own_gx, gx, error, error), "") << columns << " " << f;
    }
}

gpu::RotaryArray rotary_array(const Array& a) {
  gpu::RotaryArray result{a.raw_data(), {}};
  for (int i = 0; i < 4; ++i) result.strides[i] = a.strides()[size_t(i)] / a.itemsize();
  return result;
}

// Heads behind positions, pairs that are packs or not, numbers behind them, positions of each batch
// entry, heads for one thread or several, and pairs in two launches.
TEST_P(GatedKernels, TurnAsTheCpuDoes) {
  const auto [dtype, code, error] = GetParam();
  const Array places = array(std::vector<int32_t>{7, 1, 900, 0, 5, 5}, {2, 3});
  std::vector<double> frequencies;
  for (int j = 0; j < 48; ++j) frequencies.push_back(1.0 / (1 + j));
  for (const int launches : {1, 2})
    for (const int multiprocessors : {1, 100})
      for (const bool interleaved : {false, true})
        for (const bool packed : {false, true}) {
          const int pairs = packed ? 48 : 5;
          const int64_t depth = packed ? 112 : 13;
          const Array x = random_array({2, 3, 30, depth}, -2, 2, dtype, cpu(), 1)
                              .transpose({0, 2, 1, 3}),
                      y = zeros_like(x), own = zeros_like(x);
          kernels::rotary(cpu(), {.x = &x,
                                  .frequencies = std::span(frequencies).first(size_t(pairs)),
                                  .factor = 1.5,
                                  .interleaved = interleaved,
                                  .inverse = launches == 2,
                                  .positions = multiprocessors == 1 ? &places : nullptr,
                                  .start = 11,
                                  .y = &y});
          gpu::RotaryArgs args{};
          args.x = rotary_array(x), args.y = rotary_array(own);
          args.batch = 2, args.heads = 30, args.positions = 3, args.all_pairs = pairs;
          if (multiprocessors == 1) {
            args.places = places.data<int32_t>();
            args.place_strides[0] = 3, args.place_strides[1] = 1;
          }
          args.start = 11, args.cos_factor = 1.5, args.sin_factor = launches == 2 ? -1.5 : 1.5;
          args.interleaved = interleaved, args.packed = packed;
          const int of_launch = launches == 1 ? pairs : packed ? 32 : 3;
          for (int first = 0; first < pairs; first += of_launch) {
            args.first_pair = first;
            args.pairs = std::min(of_launch, pairs - first);
            args.rest = first == 0 ? int(depth) - 2 * pairs : 0;
            std::copy_n(frequencies.begin() + first, args.pairs, args.frequencies);
            gpu::launch_rotary(code, args, {nullptr, multiprocessors, 0, false});
          }
          EXPECT_EQ(testing::difference(own, y, error, error), "")
              << launches << multiprocessors << interleaved << packed;
        }
}

INSTANTIATE_TEST_SUITE_P(All, GatedKernels, ::testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(name(info.param.dtype)); });

}  // namespace
}  // namespace catena
