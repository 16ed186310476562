// The CUDA kernels of gradients through activations of linear layers, run on threads of the host.
#include <gtest/gtest.h>

#include <vector>

#include "backends/cuda/activation/linear_activation.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/kernels/linear.h"
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
const Type kTypes[] = {{Dtype::kFloat16, Float::kF16, 1.1e-3},
                       {Dtype::kBFloat16, Float::kBf16, 8e-3},
                       {Dtype::kFloat32, Float::kF32, 4e-6},
                       {Dtype::kFloat64, Float::kF64, 1e-13}};

// Runs the kernels in place, and returns how many parts the rows had.
int64_t run(const Type& type, LinearActivation function, const Array& g, const Array& kept,
            const Array* sums, bool accumulate, bool packed, int multiprocessors) {
  const gpu::Launch launch{nullptr, multiprocessors, 0, false};
  gpu::ActivationGradArgs args{};
  args.rows = g.shape()[0], args.columns = g.shape()[1], args.packed = packed;
  args.gy = args.gx = g.raw_data(), args.kept = kept.raw_data();
  args.sums = sums ? sums->raw_data() : nullptr, args.accumulate = accumulate;
  args.wide_sums = sums && sums->dtype() != type.dtype;
  gpu::plan_activation_grad(args, g.itemsize(), launch);
  std::vector<double> partials(size_t(args.parts * args.columns), 777);
  args.partials = sums ? partials.data() : nullptr;
  gpu::launch_activation_grad(type.code, gpu::Activated(function), args, launch);
  return args.parts;
}

std::string difference(const Array& got, const Array& expected, double error) {
  return testing::difference(got.astype(Dtype::kFloat64), expected, error, error);
}

class LinearActivationKernels : public ::testing::TestWithParam<Type> {};

// Packs and single numbers; columns for one strip of threads and for several, fewer rows than
// threads, and rows in several parts, the last of which is shorter.
TEST_P(LinearActivationKernels, AgreeWithDouble) {
  struct Case {
    int64_t rows, columns;
    bool packed;
    int multiprocessors;
    bool parts;
  };
  const auto [dtype, code, error] = GetParam();
  for (const Case& c : {Case{3, 48, true, 1, false},
                        {3, 21, false, 1, false},
                        {70, 336, true, 1, false},
                        {530, 336, true, 1, true},
                        {300, 8, true, 1, false},
                        {603, 40, false, 1, true},
                        {1, 1, false, 8, false}})
    for (const auto f :
         {LinearActivation::kRelu, LinearActivation::kGelu, LinearActivation::kGeluTanh}) {
      SCOPED_TRACE(message(c.rows, " x ", c.columns, " function ", int(f)));
      const Shape shape{c.rows, c.columns};
      const Array gy = random_array(shape, -1, 2, dtype, cpu(), 1),
                  kept = random_array(shape, -4, 4, dtype, cpu(), 2),
                  start = random_array({c.columns}, -9, 9, dtype, cpu(), 3);
      const Array wide_gy = gy.astype(Dtype::kFloat64), wide_kept = kept.astype(Dtype::kFloat64),
                  g = zeros_like(wide_gy), sums = start.astype(Dtype::kFloat64), more = sums.copy();
      kernels::linear_activation_grad(cpu(), {f, &wide_gy, &wide_kept, &g, &sums, false});
      kernels::linear_activation_grad(cpu(), {f, &wide_gy, &wide_kept, &g, &more, true});
      for (const bool accumulate : {false, true}) {
        const Array own = gy.copy(), own_sums = start.copy();
        const int64_t parts =
            run(GetParam(), f, own, kept, &own_sums, accumulate, c.packed, c.multiprocessors);
        EXPECT_EQ(parts > 1, c.parts);
        EXPECT_EQ(difference(own, g, error), "");
        EXPECT_EQ(difference(own_sums, accumulate ? more : sums, error), "");
        if (dtype == Dtype::kFloat64) continue;
        const Array wide_sums = start.astype(Dtype::kFloat32);
        run(GetParam(), f, gy.copy(), kept, &wide_sums, accumulate, c.packed, c.multiprocessors);
        EXPECT_EQ(difference(wide_sums, accumulate ? more : sums, 4e-6), "");
      }
      const Array alone = gy.copy();
      run(GetParam(), f, alone, kept, nullptr, false, c.packed, c.multiprocessors);
      EXPECT_EQ(difference(alone, g, error), "");
    }
}

INSTANTIATE_TEST_SUITE_P(All, LinearActivationKernels, ::testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(name(info.param.dtype)); });

}  // namespace
}  // namespace catena
