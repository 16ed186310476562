// The CUDA kernels of patches and of their sums, run on the host one thread after the other,
// against plain loops: every layout of image and patches, every dtype and alignment.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/convolution/patches.h"
#include "device/guarded_memory.h"
#include "kernels/convolution_case.h"

namespace catena {
namespace {

using gpu::Float;
using gpu::PatchArgs;
using testing::ConvolutionCase;
using testing::GuardedMemory;

const gpu::Launch kLaunch{nullptr, 1, 0, false};

// How the patches are in memory.
enum class Order { kColumns, kRows, kRowsChannelsLast };

// Of images of which a line begins `pitch` pixels behind the one before it.
PatchArgs args_of(const ConvolutionCase& c, Order order, int64_t pitch) {
  PatchArgs a{};
  const int64_t channels = c.channels / c.groups, area = c.height * pitch;
  a.images = c.batch, a.channels = channels, a.height = c.height, a.width = c.width;
  for (int k = 0; k < 2; ++k) {
    a.kernel[k] = c.window.kernel[k], a.out[k] = c.out(k), a.stride[k] = c.window.stride[k];
    a.pad[k] = c.window.pad[k], a.dilation[k] = c.window.dilation[k];
  }
  const int64_t first[4] = {c.channels * area, area, pitch, 1},
                last[4] = {c.channels * area, 1, pitch * c.channels, c.channels};
  std::copy_n(c.channels_last ? last : first, 4, a.image);
  const int64_t kw = a.kernel[1], taps = a.kernel[0] * kw, depth = taps * channels, ow = a.out[1],
                P = a.out[0] * ow;
  const int64_t columns[6] = {P * depth, taps * P, kw * P, P, ow, 1},
                rows[6] = {P * depth, taps, kw, 1, ow * depth, depth},
                rows_last[6] = {P * depth, 1, kw * channels, channels, ow * depth, depth};
  std::copy_n(order == Order::kColumns ? columns
              : order == Order::kRows  ? rows
                                       : rows_last,
              6, a.patches);
  return a;
}

// Calls body(place in the patches, place in the image or -1) for all patches, with offsets.
template <class Body>
void for_each_element(const PatchArgs& a, Body body) {
  int64_t at[6];
  const int64_t extents[6] = {a.images, a.channels, a.kernel[0], a.kernel[1], a.out[0], a.out[1]};
  int64_t count = 1;
  for (const int64_t e : extents) count *= e;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, patch = 0;
    for (int k = 5; k >= 0; --k) {
      at[k] = rest % extents[k], rest /= extents[k];
      patch += at[k] * a.patches[k];
    }
    const int64_t h = at[4] * a.stride[0] - a.pad[0] + at[2] * a.dilation[0],
                  w = at[5] * a.stride[1] - a.pad[1] + at[3] * a.dilation[1];
    const bool inside = h >= 0 && h < a.height && w >= 0 && w < a.width;
    body(patch,
         inside ? at[0] * a.image[0] + at[1] * a.image[1] + h * a.image[2] + w * a.image[3] : -1);
  }
}

template <class T>
void fill(const GuardedMemory<T>& memory, std::mt19937& random) {
  for (int64_t i = 0; i < memory.size(); ++i) memory[i] = T(float(int(random() % 9) - 4));
}

// Numbers that are as they were before, and others.
template <class T>
std::vector<double> numbers_of(const GuardedMemory<T>& memory) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < memory.size(); ++i) numbers.push_back(double(float(memory[i])));
  return numbers;
}

template <class T>
void check(const ConvolutionCase& c, Float code, Order order, int64_t pitch, int offset,
           std::mt19937& random) {
  PatchArgs a = args_of(c, order, pitch);
  const GuardedMemory<T> image(1, 1, c.batch * c.channels * c.height * pitch, false, offset),
      patches(1, 1, c.batch * a.channels * c.window.taps() * c.out(0) * c.out(1), false, offset);
  fill(image, random), fill(patches, random);
  const int64_t part = (c.groups - 1) * a.channels * a.image[1];  // the last group
  const int item = int(sizeof(T));

  a.from = image.data() + part, a.to = patches.data();
  gpu::launch_patches(item, a, kLaunch);
  std::vector<double> expected = numbers_of(patches);
  for_each_element(a, [&](int64_t patch, int64_t place) {
    expected[size_t(patch)] = place < 0 ? 0 : double(float(image[part + place]));
  });
  ASSERT_EQ(numbers_of(patches), expected) << "patches";

  a.from = patches.data(), a.to = image.data() + part;
  for (const bool accumulate : {false, true}) {
    fill(image, random), fill(patches, random);
    expected = numbers_of(image);
    std::vector<bool> seen(expected.size(), accumulate);
    for (int64_t n = 0; !accumulate && n < a.images; ++n)
      for (int64_t k = 0; k < a.channels; ++k)
        for (int64_t h = 0; h < a.height; ++h)
          for (int64_t w = 0; w < a.width; ++w)
            expected[size_t(part + n * a.image[0] + k * a.image[1] + h * a.image[2] +
                            w * a.image[3])] = 0;
    for_each_element(a, [&](int64_t patch, int64_t place) {
      if (place >= 0) expected[size_t(part + place)] += double(float(patches[patch]));
    });
    gpu::launch_patch_sums(code, a, accumulate, kLaunch);
    ASSERT_EQ(numbers_of(image), expected) << "sums " << accumulate;
  }

  if (a.has_windows_apart()) {
    fill(image, random), fill(patches, random);
    expected = numbers_of(image);
    int64_t written = 0;
    for_each_element(a, [&](int64_t patch, int64_t place) {
      if (place < 0) return;
      expected[size_t(part + place)] = double(float(patches[patch]));
      ++written;
    });
    gpu::launch_patches_back(item, a, kLaunch);
    ASSERT_EQ(numbers_of(image), expected) << "back";
    const int64_t elements = a.images * a.channels * a.height * a.width;
    ASSERT_TRUE(!a.covers_image() || written == elements);
  }
  ASSERT_TRUE(image.is_intact() && patches.is_intact());
}

// An offset, and a distance between lines that is not their length, may each break alignment.
void check_all(const ConvolutionCase& c, std::mt19937& random) {
  const int64_t whole = (c.width + 7) / 8 * 8;
  const std::pair<int, int64_t> places[] = {
      {0, c.width}, {1, c.width}, {4, whole}, {0, whole}, {0, c.width + 1}};
  for (const Order order : {Order::kColumns, Order::kRows, Order::kRowsChannelsLast})
    for (const auto& [offset, pitch] : places) {
      SCOPED_TRACE(c.text() + " order " + std::to_string(int(order)) + " offset " +
                   std::to_string(offset) + " pitch " + std::to_string(pitch));
      check<float>(c, Float::kF32, order, pitch, offset, random);
      check<double>(c, Float::kF64, order, pitch, offset, random);
      check<__half>(c, Float::kF16, order, pitch, offset, random);
      check<__nv_bfloat16>(c, Float::kBf16, order, pitch, offset, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(PatchesOnHost, AnyWindow) {
  std::mt19937 random(3);
  for (int i = 0; i < 40 && !HasFatalFailure(); ++i)
    check_all(testing::random_convolution(random), random);
}

// Lines of a window in packs of 2 bytes to 16, and of all channels where these are last.
TEST(PatchesOnHost, WindowsApart) {
  std::mt19937 random(4);
  for (ConvolutionCase c : testing::patch_cases()) {
    if (HasFatalFailure()) return;
    if (c.accumulate || c.filters_last) continue;
    c.batch = 2;
    check_all(c, random);
    c.channels = 8 * c.groups, c.height = std::min<int64_t>(c.height / 4 * 4, 16);
    c.width = c.width / 8 * 8;
    if (c.possible()) check_all(c, random);
  }
}

// Whether gradients need no zeros beforehand.
TEST(PatchesOnHost, CoverImagesThatAreMultiplesOfTheWindow) {
  ConvolutionCase c = testing::patch_cases().front();
  EXPECT_TRUE(args_of(c, Order::kRows, c.width).covers_image());
  c.height += 1;
  EXPECT_FALSE(args_of(c, Order::kRows, c.width).covers_image());
}

// Distances that 32 bits do not hold must not become elements of the image.
TEST(PatchesOnHost, WindowsFarBeyondTheImage) {
  std::mt19937 random(5);
  constexpr int64_t kFar = int64_t{1} << 32;
  ConvolutionCase c;
  c.window = {{3, 3}, {1, 1}, {kFar, kFar}, {kFar, kFar}};
  ASSERT_TRUE(c.possible());
  for (const bool last : {false, true}) {
    c.channels_last = last;
    check_all(c, random);
  }
}

}  // namespace
}  // namespace catena
