#include "functions/common/layout.h"

#include "functions/common/axes.h"

namespace catena::functions {
namespace {

// The axes in the order of memory, the channels last.
Axes channels_last_order(int ndim, int channel_axes) {
  Axes order{0};
  for (int i = 1 + channel_axes; i < ndim; ++i) order.push_back(i);
  for (int i = 1; i <= channel_axes; ++i) order.push_back(i);
  return order;
}

}  // namespace

BatchLayout BatchLayout::of(const Array& x, int channel_axes) {
  BatchLayout layout{channel_axes, true};
  layout.last = !x.is_contiguous() && layout.fits(x);
  return layout;
}

bool BatchLayout::fits(const Array& a) const {
  if (!last) return a.is_contiguous();
  int64_t stride = a.itemsize();
  const auto follows = [&](int axis) {
    const bool dense = a.shape()[size_t(axis)] == 1 || a.strides()[size_t(axis)] == stride;
    stride *= a.shape()[size_t(axis)];
    return dense;
  };
  for (int i = channel_axes; i >= 1; --i)
    if (!follows(i)) return false;
  for (int i = a.ndim() - 1; i > channel_axes; --i)
    if (!follows(i)) return false;
  return follows(0);
}

Array BatchLayout::laid_out(const Array& a) const {
  if (fits(a)) return a;
  if (!last) return a.contiguous();
  const Axes order = channels_last_order(a.ndim(), channel_axes);
  return a.transpose(order).contiguous().transpose(inverse_order(order));
}

Array BatchLayout::uninitialized(const Shape& shape, const Array& like) const {
  if (!last) return Array::uninitialized(shape, like.dtype(), like.device());
  const Axes order = channels_last_order(shape.ndim(), channel_axes);
  Shape in_memory;
  for (const int64_t axis : order) in_memory.push_back(shape[size_t(axis)]);
  return Array::uninitialized(in_memory, like.dtype(), like.device())
      .transpose(inverse_order(order));
}

}  // namespace catena::functions
