#include "catena/kernels/window.h"

namespace catena {

int64_t Window::taps() const {
  int64_t count = 1;
  for (int k = 0; k < axes; ++k) count *= kernel[k];
  return count;
}

int64_t Window::range(int axis) const {
  int64_t distance = 0;
  if (__builtin_mul_overflow(dilation[axis], kernel[axis] - 1, &distance)) return 0;
  return __builtin_add_overflow(distance, 1, &distance) ? 0 : distance;
}

int64_t Window::positions(int axis, int64_t size, bool cover_all) const {
  // No sum of numbers below the limit overflows, and no image in memory is larger.
  constexpr int64_t kLimit = int64_t{1} << 60;
  const int64_t needed = range(axis), step = stride[axis];
  if (pad[axis] >= kLimit || needed <= 0 || needed >= kLimit) return 0;
  const int64_t room = size + 2 * pad[axis] - needed;
  if (room < 0) return 0;
  return room / step + (cover_all && room % step != 0 ? 2 : 1);
}

}  // namespace catena
