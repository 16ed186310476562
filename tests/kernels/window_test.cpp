// Positions of windows, counted one by one and at the ends of 64 bits.
#include "catena/kernels/window.h"

#include <gtest/gtest.h>

#include <limits>

namespace catena {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

Window window(int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  return {{kernel}, {stride}, {pad}, {dilation}, 1};
}

// Positions whose elements all lie in the padded image; with cover_all those that begin in it until
// all elements are seen.
int64_t counted(const Window& w, int64_t size, bool cover_all) {
  const int64_t padded = size + 2 * w.pad[0], range = (w.kernel[0] - 1) * w.dilation[0] + 1;
  int64_t count = 0, end = 0;
  for (int64_t begin = 0; begin + range <= padded; begin += w.stride[0]) {
    ++count;
    end = begin + range;
  }
  return count > 0 && cover_all && end < padded ? count + 1 : count;
}

TEST(Window, CountsPositions) {
  for (int64_t size = 1; size < 9; ++size)
    for (int64_t kernel = 1; kernel < 5; ++kernel)
      for (int64_t stride = 1; stride < 5; ++stride)
        for (int64_t pad = 0; pad < 3; ++pad)
          for (int64_t dilation = 1; dilation < 4; ++dilation)
            for (const bool cover_all : {false, true}) {
              const Window w = window(kernel, stride, pad, dilation);
              EXPECT_EQ(w.positions(0, size, cover_all), counted(w, size, cover_all))
                  << size << ' ' << kernel << ' ' << stride << ' ' << pad << ' ' << dilation;
            }
}

TEST(Window, NumbersBeyondAnyImageLeaveNoPosition) {
  EXPECT_EQ(window(2, 1, kHuge, 1).positions(0, 6), 0);
  EXPECT_EQ(window(2, 1, kHuge / 2, 1).positions(0, 6), 0);
  EXPECT_EQ(window(5, 1, 2, int64_t{1} << 62).positions(0, 6), 0);
  EXPECT_EQ(window(2, 1, 0, kHuge).positions(0, 6), 0);
  EXPECT_EQ(window(kHuge, 1, 0, 1).positions(0, 6), 0);
  EXPECT_EQ(window(2, kHuge, 1, 1).positions(0, 6, true), 2);
  EXPECT_EQ(window(5, 1, 2, int64_t{1} << 62).range(0), 0);
  EXPECT_EQ(window(2, 1, 0, kHuge).range(0), 0);
}

TEST(Window, HasUpToThreeAxes) {
  const Window w{{2, 3, 4}, {1, 2, 3}, {0, 1, 2}, {1, 1, 2}, 3};
  EXPECT_EQ(w.taps(), 24);
  EXPECT_EQ(w.range(2), 7);
  EXPECT_EQ(w.positions(0, 5), 4);
  EXPECT_EQ(w.positions(1, 5), 3);
  EXPECT_EQ(w.positions(2, 10), 3);
  EXPECT_EQ((Window{{2, 3}, {1, 1}, {0, 0}, {1, 1}}.taps()), 6);
}

}  // namespace
}  // namespace catena
