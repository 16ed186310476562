#include "array/padding.h"

#include "catena/array/creation.h"
#include "catena/array/math.h"

namespace catena {

PadWidths checked_widths(const Shape& shape, const PadWidths& given, PadMode mode) {
  PadWidths widths = given;
  if (widths.size() == 1) widths.resize(shape.size(), widths[0]);
  CATENA_CHECK(ShapeError, widths.size() == shape.size(), given.size(),
               " pairs of widths for an array of shape ", shape);
  for (size_t d = 0; d < widths.size(); ++d) {
    const auto& [before, after] = widths[d];
    CATENA_CHECK(ValueError, before >= 0 && after >= 0, "expected widths of at least 0, got (",
                 before, ", ", after, ")");
    // Distances of this size are below 2^63 in every mode.
    constexpr int64_t kMost = int64_t{1} << 60;
    CATENA_CHECK(ShapeError, before <= kMost && after <= kMost, "widths (", before, ", ", after,
                 ") of axis ", d, " make an array of more than 2^60 elements");
    CATENA_CHECK(ValueError, mode == PadMode::kConstant || shape[d] > 0 || before + after == 0,
                 "cannot extend the empty axis ", d, " of shape ", shape,
                 " in this mode; kConstant can");
  }
  return widths;
}

Array padded_positions(int64_t n, int64_t before, int64_t after, PadMode mode, Device device) {
  const Array i = arange(-before, n + after, {Dtype::kInt64, device});
  // Forth and back again, as a triangle wave.
  const auto bouncing = [&](int64_t period, int64_t turn) {
    const Array p = remainder(i, period);
    return minimum(p, turn - p);
  };
  if (mode == PadMode::kWrap) return remainder(i, n);
  if (mode == PadMode::kSymmetric) return bouncing(2 * n, 2 * n - 1);
  if (mode == PadMode::kReflect && n > 1) return bouncing(2 * (n - 1), 2 * (n - 1));
  return clip(i, 0, n - 1);
}

}  // namespace catena
