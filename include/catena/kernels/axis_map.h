// Map from the elements along one axis of an image to those of another image.
#pragma once

#include <cstdint>

namespace catena {

// Element o of [0, out) is a sum of elements i of [0, in):
// clang-format off
//   kWindow    of those in [o * stride - pad, o * stride - pad + kernel) that there are, if any
//   kBins      the mean of those in [floor(o * in / out), ceil((o + 1) * in / out))
//   kNearest   the one at floor(o * in / out)
//   kAligned   the two around o * (in - 1) / (out - 1), weighted by their nearness; out = 1: the
//              first one
//   kCentered  the two around (o + 1/2) * in / out - 1/2, moved to the edge where it is outside
// clang-format on
enum class AxisRule : uint8_t { kWindow, kBins, kNearest, kAligned, kCentered };

// All extents are at least 1; for rules other than kWindow they are at most kMostOfAxis.
struct AxisMap {
  AxisRule rule;
  int64_t in, out;
  int64_t kernel = 1, stride = 1, pad = 0;  // of kWindow
};
inline constexpr int64_t kMostOfAxis = int64_t{1} << 30;

}  // namespace catena
