// The CUDA kernels of softmax cross entropy, run on threads of the host, against the providers of
// the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backends/cuda/loss/loss.h"
#include "catena/array/creation.h"
#include "catena/kernels/loss.h"
#include "catena/testing.h"

namespace catena {
namespace {

using gpu::Float;

const gpu::Launch kLaunch{nullptr, 1, 0, false};

struct Result {
  Array lse, count, loss;
  Array gx;
};

Result zero_result(const Array& x) {
  const Dtype wide = x.dtype() == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
  const int64_t samples = x.shape()[0] * x.shape()[2];
  return {zeros({2, samples}, {wide, cpu()}), zeros({}, {wide, cpu()}),
          zeros({}, {x.dtype(), cpu()}), zeros(x.shape(), {x.dtype(), cpu()})};
}

CrossEntropyCall call_of(const Array& x, const Array& t, const Result& r) {
  return {&x, &t, -1, true, &r.lse, &r.count, &r.loss};
}

Result by_cpu(const Array& x, const Array& t, const Array& gloss) {
  const Result r = zero_result(x);
  const CrossEntropyCall call = call_of(x, t, r);
  kernels::softmax_cross_entropy(cpu(), call);
  kernels::softmax_cross_entropy_grad(cpu(), {call, gloss, r.gx});
  return r;
}

Result by_kernels(Float type, const Array& x, const Array& t, const Array& gloss, bool aligned) {
  const Result r = zero_result(x);
  gpu::CrossEntropyArgs args{};
  gpu::SampleArgs& s = args.samples;
  s.x = x.raw_data(), s.t = t.data<int32_t>();
  s.outer = x.shape()[0], s.classes = x.shape()[1], s.inner = x.shape()[2];
  s.has_ignore = true, s.ignore_label = -1;
  const int blocks = gpu::sample_blocks(s, kLaunch);
  std::vector<gpu::Tally> tallies(static_cast<size_t>(blocks));
  unsigned finished = 0;
  s.scratch = {tallies.data(), &finished};
  args.normalize = true, args.aligned = aligned;
  args.lse = r.lse.raw_data(), args.count = r.count.raw_data(), args.loss = r.loss.raw_data();
  args.gloss = gloss.raw_data(), args.gx = r.gx.raw_data();
  gpu::launch_cross_entropy(type, args, blocks, kLaunch);
  gpu::launch_cross_entropy_grad(type, args, kLaunch);
  return r;
}

struct Case {
  int64_t rows, classes;
  double scale;
  bool aligned;
};
// One block, several blocks, rows that packs do not fill.
constexpr Case kCases[] = {{1, 1032, 1, true}, {3, 8200, 300, true}, {5, 4099, 1, true}};

struct Type {
  Dtype dtype;
  Float code;
  double error;
};
class CrossEntropyKernels : public ::testing::TestWithParam<Type> {};

TEST_P(CrossEntropyKernels, RowsOfManyClassesAreThoseOfTheCpu) {
  const auto [dtype, code, error] = GetParam();
  const double wide_error = dtype == Dtype::kFloat64 ? 1e-12 : 2e-6;
  const Array gloss = full({}, 1.5, {dtype, cpu()});
  for (const Case& c : kCases) {
    const Array x =
        testing::random_array({c.rows, c.classes, 1}, -c.scale, c.scale, dtype, cpu(), 3);
    Array t = zeros({c.rows, 1}, {Dtype::kInt32, cpu()});
    for (int64_t i = 0; i < c.rows; ++i)
      t.data<int32_t>()[i] = i == 1 ? -1 : static_cast<int32_t>((i * 977 + 3) % c.classes);
    const Result expected = by_cpu(x, t, gloss), actual = by_kernels(code, x, t, gloss, c.aligned);
    const std::string what = message(c.rows, "x", c.classes);
    EXPECT_EQ(testing::difference(actual.lse, expected.lse, wide_error, wide_error), "") << what;
    EXPECT_EQ(testing::difference(actual.count, expected.count, 0, 0), "") << what;
    EXPECT_EQ(testing::difference(actual.loss, expected.loss, error, error), "") << what;
    EXPECT_EQ(testing::difference(actual.gx, expected.gx, error, error / 100), "") << what;
    const Result again = by_kernels(code, x, t, gloss, c.aligned);
    EXPECT_EQ(testing::difference(actual.lse, again.lse, 0, 0), "") << what;
  }
}

TEST_P(CrossEntropyKernels, NanAndInfiniteScores) {
  const auto [dtype, code, error] = GetParam();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Array gloss = full({}, 1, {dtype, cpu()});
  const int64_t classes = 2048;
  Array t = zeros({1, 1}, {Dtype::kInt32, cpu()});
  t.data<int32_t>()[0] = 7;
  const auto loss_with = [&](double value, double rest) {
    std::vector<double> scores(size_t(classes), rest);
    scores[7] = 0.5;
    scores[9] = value;
    const Array x = array(scores).astype(dtype).reshape({1, classes, 1});
    return by_kernels(code, x, t, gloss, true).loss.to_vector<double>()[0];
  };
  EXPECT_TRUE(std::isnan(loss_with(std::nan(""), 0.25)));
  EXPECT_TRUE(std::isnan(loss_with(std::nan(""), -kInf)));
  // Scores of -infinity add nothing.
  EXPECT_NEAR(loss_with(-kInf, 0.25), std::log(2046 * std::exp(-0.25) + 1), 10 * error);
  EXPECT_NEAR(loss_with(0.5, -kInf), std::log(2), 10 * error);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CrossEntropyKernels,
                         ::testing::Values(Type{Dtype::kFloat16, Float::kF16, 2e-3},
                                           Type{Dtype::kBFloat16, Float::kBf16, 1.6e-2},
                                           Type{Dtype::kFloat32, Float::kF32, 1e-5},
                                           Type{Dtype::kFloat64, Float::kF64, 1e-12}));

}  // namespace
}  // namespace catena
