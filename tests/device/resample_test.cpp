// The CUDA kernels of resampling, run on the host one thread after the other, against dense
// matrices.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "backends/cuda/pooling/resample.h"
#include "device/guarded_memory.h"
#include "kernels/resample_case.h"

namespace catena {
namespace {

using gpu::Float;
using testing::ResampleCase;

constexpr double kSmallest = 6e-8;  // of float16

template <class T>
testing::GuardedMemory<T> memory_of(const ResampleCase& c, const Shape& shape, int offset) {
  return {shape[0], shape[1], shape[2] * shape[3], c.last, offset};
}

// Runs a call of the case.
template <class T>
void run(const ResampleCase& c, Float code, const testing::GuardedMemory<T>& x,
         const testing::GuardedMemory<T>& y, bool aligned) {
  gpu::ResampleArgs args{};
  args.images = c.images * (c.last ? 1 : c.channels), args.channels = c.last ? c.channels : 1;
  args.row_map = c.rows, args.column_map = c.columns, args.adjoint = c.adjoint;
  args.rows = axis_ranges(c.rows, c.adjoint), args.columns = axis_ranges(c.columns, c.adjoint);
  args.divisor = c.divisor, args.aligned = aligned, args.accumulate = c.accumulate;
  args.x = x.data(), args.y = y.data();
  gpu::launch_resample(code, args, {nullptr, 4, 0, false});
}

template <class T>
void check(const ResampleCase& c, Float code, double eps, int offset, std::mt19937& random) {
  const auto x = memory_of<T>(c, c.in(), offset), y = memory_of<T>(c, c.out(), offset);
  std::vector<double> numbers;
  for (int64_t i = 0; i < x.size(); ++i) {
    numbers.push_back(double(int(random() % 17) - 8));
    x[i] = T(float(numbers.back()));
  }
  for (int64_t i = 0; i < y.size(); ++i) y[i] = T(3.0f);
  run(c, code, x, y, offset == 0);
  const testing::Resampled expected = testing::resampled(c, numbers);
  for (int64_t i = 0; i < y.size(); ++i) {
    const double before = c.accumulate ? 3 : 0;
    ASSERT_NEAR(double(float(y[i])), expected.y[size_t(i)] + before,
                eps * (expected.size[size_t(i)] + before) + kSmallest)
        << i;
  }
  EXPECT_TRUE(y.is_intact() && x.is_intact());
}

// One of the types, and one of the offsets.
void check_one(const ResampleCase& c, int which, std::mt19937& random) {
  const int offset = which / 4 % 2;
  SCOPED_TRACE(c.text() + (offset ? ", not aligned" : ""));
  if (which % 4 == 0) check<float>(c, Float::kF32, 2e-6, offset, random);
  if (which % 4 == 1) check<double>(c, Float::kF64, 1e-7, offset, random);  // as float32
  if (which % 4 == 2) check<__half>(c, Float::kF16, 1.1e-3, offset, random);
  if (which % 4 == 3) check<__nv_bfloat16>(c, Float::kBf16, 9e-3, offset, random);
}

void check_all(const ResampleCase& c, std::mt19937& random) {
  for (int which = 0; which < 8 && !::testing::Test::HasFatalFailure(); ++which)
    check_one(c, which, random);
}

TEST(ResampleOnHost, RandomCases) {
  std::mt19937 random(1);
  for (int i = 0; i < 60 && !HasFatalFailure(); ++i) {
    const ResampleCase c = testing::random_resampling(random);
    // With channels first the threads of a block meet, and each is one of the host.
    c.last ? check_all(c, random) : check_one(c, i / 2, random);
  }
}

// Windows that have kernels of their own.
TEST(ResampleOnHost, SmallWindows) {
  std::mt19937 random(2);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 150 && !HasFatalFailure(); ++i) {
    ResampleCase c;
    c.images = pick(1, 2), c.channels = pick(0, 1) ? 8 * pick(1, 2) : pick(1, 5);
    const int64_t kernel = pick(2, 3), stride = kernel == 2 ? 2 : pick(1, 2);
    for (AxisMap* m : {&c.rows, &c.columns}) {
      *m = {AxisRule::kWindow, pick(1, 21), 1, kernel, stride, pick(0, 3)};
      m->out = pick(1, (m->in + 2 * m->pad) / stride + 1);
    }
    c.divisor = double(kernel * kernel), c.last = pick(0, 2) != 0;
    c.adjoint = pick(0, 1), c.accumulate = pick(0, 1);
    check_all(c, random);
  }
}

TEST(ResampleOnHost, SumsAreMadeInTheOrderOfTheSlot) {
  std::mt19937 random(4);
  std::uniform_real_distribution<float> draw(-4, 4);
  for (const ResampleCase& c : testing::wide_windows()) {
    SCOPED_TRACE(c.text());
    const auto x = memory_of<float>(c, c.in(), 0), y = memory_of<float>(c, c.out(), 0);
    std::vector<float> numbers;
    for (int64_t i = 0; i < x.size(); ++i) numbers.push_back(x[i] = draw(random));
    run(c, Float::kF32, x, y, true);
    const std::vector<float> expected = testing::summed_in_order(c, numbers);
    for (int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], expected[size_t(i)]) << i;
  }
}

TEST(ResampleOnHost, DistancesBeyond32Bits) {
  std::mt19937 random(3);
  for (const ResampleCase& c : testing::far_resamplings()) check_all(c, random);
}

}  // namespace
}  // namespace catena
