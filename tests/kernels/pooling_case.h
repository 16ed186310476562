// Max poolings of many kinds, and plain loops to compare their providers with.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "catena/array/array.h"
#include "catena/kernels/window.h"

namespace catena::testing {

struct PoolingCase {
  int64_t images = 2, channels = 3;
  std::vector<int64_t> extents;
  Window window;  // of extents.size() axes
  bool cover_all = false, last = false, accumulate = false;

  int axes() const { return int(extents.size()); }
  std::vector<int64_t> positions() const {
    std::vector<int64_t> result;
    for (int k = 0; k < axes(); ++k)
      result.push_back(window.positions(k, extents[size_t(k)], cover_all));
    return result;
  }
  // Whether every position sees an element.
  bool is_possible() const {
    const auto p = positions();
    for (int k = 0; k < axes(); ++k) {
      const size_t i = size_t(k);
      if (p[i] < 1 || window.pad[k] >= window.kernel[k]) return false;
      if ((p[i] - 1) * window.stride[k] - window.pad[k] >= extents[i]) return false;
    }
    return true;
  }
  Shape shape(const std::vector<int64_t>& behind) const {
    Shape s{images, channels};
    for (const int64_t extent : behind) s.push_back(extent);
    return s;
  }
  std::string text() const {
    std::ostringstream s;
    s << images << " x " << channels << (last ? " channels last" : "");
    for (int k = 0; k < axes(); ++k)
      s << ", " << extents[size_t(k)] << ": kernel " << window.kernel[k] << " stride "
        << window.stride[k] << " pad " << window.pad[k];
    if (cover_all) s << ", cover_all";
    if (accumulate) s << ", accumulate";
    return s.str();
  }
};

inline PoolingCase random_pooling(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (;;) {
    PoolingCase c;
    const int axes = int(pick(1, 3));
    c.images = pick(1, 3);
    c.channels = pick(0, 2) == 0 ? 8 * pick(1, 3) : pick(1, 7);
    c.window.axes = axes;
    const bool wide = pick(0, 9) == 0;  // more elements than a byte counts
    for (int k = 0; k < axes; ++k) {
      c.extents.push_back(wide ? pick(8, 20) : pick(1, 9));
      c.window.kernel[k] = wide ? pick(7, 18) : pick(1, 4);
      c.window.stride[k] = pick(1, 4);
      c.window.pad[k] = pick(0, c.window.kernel[k] - 1);
      c.window.dilation[k] = 1;
    }
    c.cover_all = pick(0, 1);
    c.last = pick(0, 1);
    c.accumulate = pick(0, 1);
    if (c.is_possible()) return c;
  }
}

// Positions and elements by number: index (n, c, ...) in C order.
class PoolingReference {
 public:
  PoolingReference(const PoolingCase& c, const std::vector<double>& x) : case_(c) {
    const std::vector<int64_t> out = c.positions();
    const int64_t planes = c.images * c.channels, area = product(c.extents);
    for (int64_t plane = 0; plane < planes; ++plane)
      for (int64_t at = 0; at < product(out); ++at) find(x, plane * area, at, out);
  }
  // The number of the element of x that gives each number of y.
  const std::vector<int64_t>& largest() const { return largest_; }

 private:
  static int64_t product(const std::vector<int64_t>& extents) {
    int64_t p = 1;
    for (const int64_t e : extents) p *= e;
    return p;
  }
  void find(const std::vector<double>& x, int64_t plane, int64_t position,
            const std::vector<int64_t>& out) {
    int64_t taps = 1, best = -1;
    for (int k = 0; k < case_.axes(); ++k) taps *= case_.window.kernel[k];
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t element = element_at(position, tap, out);
      if (element < 0) continue;
      const double v = x[size_t(plane + element)], b = best < 0 ? 0 : x[size_t(plane + best)];
      if (best < 0 || (!std::isnan(b) && (std::isnan(v) || v > b))) best = element;
    }
    largest_.push_back(plane + best);
  }
  // In its plane, or -1 outside of it.
  int64_t element_at(int64_t position, int64_t tap, const std::vector<int64_t>& out) const {
    int64_t element = 0, step = 1;
    for (int k = case_.axes() - 1; k >= 0; --k) {
      const size_t i = size_t(k);
      const int64_t e = position % out[i] * case_.window.stride[k] - case_.window.pad[k] +
                        tap % case_.window.kernel[k];
      if (e < 0 || e >= case_.extents[i]) return -1;
      element += e * step;
      step *= case_.extents[i], position /= out[i], tap /= case_.window.kernel[k];
    }
    return element;
  }

  PoolingCase case_;
  std::vector<int64_t> largest_;
};

}  // namespace catena::testing
