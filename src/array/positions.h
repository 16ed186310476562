// Arrays of positions (dtype, device, range), for everything that indexes with arrays.
#pragma once

#include <span>

#include "catena/array/indexing.h"

namespace catena {

// One list of positions, and the axis that it indexes.
struct PositionList {
  Array array;  // int32 or int64, any shape
  int64_t extent = 0;
  int axis = 0;           // named in errors
  bool in_range = false;  // known without a check
};

// The array itself, or a copy as int64 for the other integer dtypes. Throws DtypeError,
// DeviceError.
Array integer_positions(Device device, const Array& indices);
// Throws IndexError with the first offending value of the worst list. Waits once for a GPU.
void check_positions(std::span<const PositionList> lists);
// The same for one list.
void check_positions(const Array& positions, int64_t extent, int axis);
// Positions in [0, extent) as int64. Negative ones count from the end; `mode` decides about others.
Array wrapped_positions(const Array& positions, int64_t extent, OutOfRange mode);
// unravel_index of positions that are known to be in range.
std::vector<Array> unravel_known(const Array& positions, const Shape& shape);

}  // namespace catena
