// The CUDA kernels of max pooling, run on the host one thread after the other, against plain loops:
// every window that has a kernel of its own, every layout, dtype and alignment.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "backends/cuda/pooling/pooling.h"
#include "device/guarded_memory.h"
#include "kernels/pooling_case.h"

namespace catena {
namespace {

using gpu::Float;
using testing::PoolingCase;

int64_t product(const std::vector<int64_t>& extents) {
  int64_t p = 1;
  for (const int64_t e : extents) p *= e;
  return p;
}

PoolingSizes sizes_of(const PoolingCase& c) {
  PoolingSizes s{};
  s.images = c.last ? c.images : c.images * c.channels;
  s.channels = c.last ? c.channels : 1;
  s.last = c.last;
  for (int k = 0; k < 3; ++k) s.in[k] = s.out[k] = s.kernel[k] = s.stride[k] = 1;
  const std::vector<int64_t> positions = c.positions();
  for (int axis = 0; axis < c.axes(); ++axis) {
    const int k = 3 - c.axes() + axis;
    s.in[k] = c.extents[size_t(axis)], s.out[k] = positions[size_t(axis)];
    s.kernel[k] = c.window.kernel[axis], s.stride[k] = c.window.stride[axis];
    s.pad[k] = c.window.pad[axis];
  }
  return s;
}

template <class T>
testing::GuardedMemory<T> memory_of(const PoolingCase& c, int64_t area, int offset) {
  return {c.images, c.channels, area, c.last, offset};
}

// Few different numbers, so that windows have equal ones, zeros of both signs, and perhaps NaN.
double draw(std::mt19937& random, bool special) {
  const double v = double(int(random() % 7) - 3);
  if (special && random() % 30 == 0)
    return random() % 2 ? std::numeric_limits<double>::quiet_NaN()
                        : std::numeric_limits<double>::infinity() * (random() % 2 ? 1 : -1);
  return v == 0 && random() % 2 ? -0.0 : v;
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
void check(const PoolingCase& c, Float code, int offset, bool special, std::mt19937& random) {
  const int64_t in = product(c.extents), out = product(c.positions());
  const auto x = memory_of<T>(c, in, offset), y = memory_of<T>(c, out, offset),
             gy = memory_of<T>(c, out, offset), gx = memory_of<T>(c, in, offset);
  std::vector<double> numbers;
  for (int64_t i = 0; i < x.size(); ++i) {
    numbers.push_back(draw(random, special));
    x[i] = T(float(numbers.back()));
    gx[i] = T(3.0f);
  }
  for (int64_t i = 0; i < gy.size(); ++i) gy[i] = T(float(int(random() % 9) - 4));
  gpu::PoolingArgs args{};
  args.sizes = sizes_of(c);
  args.aligned = offset == 0;
  const bool bytes = args.sizes.taps() <= kMostTapsOfByte;
  const auto places = memory_of<uint8_t>(c, bytes ? out : 4 * out, 0);
  args.x = x.data(), args.y = y.data(), args.places = places.data();
  const gpu::Launch launch{nullptr, 4, 0, false};
  gpu::launch_max_pooling(code, args, launch);
  args.gy = gy.data(), args.gx = gx.data(), args.accumulate = c.accumulate;
  gpu::launch_max_pooling_grad(code, args, launch);

  const testing::PoolingReference reference(c, numbers);
  std::vector<double> expected(size_t(x.size()), c.accumulate ? 3 : 0);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t from = reference.largest()[size_t(i)];
    ASSERT_TRUE(same_bits<T>(y[i], x[from])) << "y " << i;
    expected[size_t(from)] += double(float(gy[i]));
  }
  for (int64_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(double(float(gx[i])), expected[size_t(i)]) << "gx " << i;
  EXPECT_TRUE(y.is_intact() && gx.is_intact() && places.is_intact());
}

void check_all(const PoolingCase& c, std::mt19937& random) {
  for (const int offset : {0, 1})
    for (const bool special : {false, true}) {
      SCOPED_TRACE(c.text() + (offset ? ", not aligned" : "") + (special ? ", with NaN" : ""));
      check<float>(c, Float::kF32, offset, special, random);
      check<double>(c, Float::kF64, offset, special, random);
      check<__half>(c, Float::kF16, offset, special, random);
      check<__nv_bfloat16>(c, Float::kBf16, offset, special, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

// Square windows of two axes with equal strides, mostly.
PoolingCase small_window(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (;;) {
    PoolingCase c;
    c.images = pick(1, 3);
    c.channels = pick(0, 1) ? 8 * pick(1, 2) : pick(1, 7);
    c.extents = {pick(1, 19), pick(1, 19)};
    const int64_t kernel = pick(2, 3), stride = pick(1, 3);
    c.window = {{kernel, kernel},
                {stride, pick(0, 7) ? stride : pick(1, 3)},
                {pick(0, kernel - 1), pick(0, kernel - 1)},
                {1, 1}};
    c.cover_all = pick(0, 1), c.last = pick(0, 2) != 0, c.accumulate = pick(0, 1);
    if (c.is_possible()) return c;
  }
}

TEST(MaxPoolingOnHost, SmallWindows) {
  std::mt19937 random(1);
  for (int i = 0; i < 150 && !HasFatalFailure(); ++i) check_all(small_window(random), random);
}

TEST(MaxPoolingOnHost, AnyWindow) {
  std::mt19937 random(2);
  for (int i = 0; i < 40 && !HasFatalFailure(); ++i)
    check_all(testing::random_pooling(random), random);
}

}  // namespace
}  // namespace catena
