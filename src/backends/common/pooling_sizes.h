// Sizes of a pooling for all of its providers: image and window with three axes, of which a window
// of fewer leaves the first ones at one element.
#pragma once

#include <cstddef>
#include <cstdint>

namespace catena {

// Extents of image and result behind the channels, and how the window moves over them. "last": the
// channels are innermost in memory.
struct PoolingSizes {
  int64_t images, channels;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3];
  bool last;

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_area() const { return in[0] * in[1] * in[2]; }
  int64_t out_area() const { return out[0] * out[1] * out[2]; }
};

// Of an image x and a result y as the calls of catena/kernels/pooling.h have them. Arrays that fit
// both layouts count as contiguous.
template <class Array, class Window>
PoolingSizes pooling_sizes(const Array& x, const Array& y, const Window& window) {
  PoolingSizes s{};
  s.images = x.shape()[0], s.channels = x.shape()[1];
  const int missing = 3 - window.axes;
  for (int k = 0; k < 3; ++k) {
    const int axis = k - missing;
    const bool there = axis >= 0;
    s.in[k] = there ? x.shape()[static_cast<std::size_t>(2 + axis)] : 1;
    s.out[k] = there ? y.shape()[static_cast<std::size_t>(2 + axis)] : 1;
    s.kernel[k] = there ? window.kernel[axis] : 1;
    s.stride[k] = there ? window.stride[axis] : 1;
    s.pad[k] = there ? window.pad[axis] : 0;
  }
  s.last = !(x.is_contiguous() && y.is_contiguous());
  return s;
}

// Where the largest element of a window is can be told by one byte up to so many elements.
constexpr int64_t kMostTapsOfByte = 255;

}  // namespace catena
