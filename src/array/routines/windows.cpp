#include "catena/array/windows.h"

#include <algorithm>
#include <cmath>

#include "catena/array/math.h"

namespace catena {
namespace {

// a + b cos(pi t) + c cos(2 pi t) for t from -1 to 1.
Array cosines(int64_t n, double a, double b, double c, const ArrayOptions& options) {
  const Device device = options.device.value_or(current_device());
  const Dtype dtype = options.dtype ? *options.dtype : default_float();
  if (n <= 1) return ones({std::max<int64_t>(n, 0)}, {dtype, device});
  const Array t = arange(1 - n, n, 2, {Dtype::kFloat64, device}) * (M_PI / double(n - 1));
  Array result = a + b * cos(t);
  if (c != 0) result = result + c * cos(t * 2);
  return result.astype(dtype, false);
}

}  // namespace

Array bartlett(int64_t n, const ArrayOptions& options) {
  if (n <= 1) return cosines(n, 1, 0, 0, options);
  const Device device = options.device.value_or(current_device());
  const Array t = arange(1 - n, n, 2, {Dtype::kFloat64, device}) / double(n - 1);
  return (1 - absolute(t)).astype(options.dtype ? *options.dtype : default_float(), false);
}

Array hanning(int64_t n, const ArrayOptions& options) { return cosines(n, 0.5, 0.5, 0, options); }
Array hamming(int64_t n, const ArrayOptions& options) { return cosines(n, 0.54, 0.46, 0, options); }
Array blackman(int64_t n, const ArrayOptions& options) {
  return cosines(n, 0.42, 0.5, 0.08, options);
}

}  // namespace catena
