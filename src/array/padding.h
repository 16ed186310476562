// Parts of `pad` that arrays and variables share.
#pragma once

#include "catena/array/manipulation.h"

namespace catena {

// A pair of widths for each axis. ShapeError for another number of pairs and widths above 2^60,
// ValueError for negative ones and where a mode other than kConstant would extend an axis without
// elements.
PadWidths checked_widths(const Shape& shape, const PadWidths& given, PadMode mode);

// The element of an axis of n at each position from -before to n + after, as int64, made on the
// device: nothing is copied from the host, so that it can be captured. Not for kConstant.
Array padded_positions(int64_t n, int64_t before, int64_t after, PadMode mode, Device device);

}  // namespace catena
