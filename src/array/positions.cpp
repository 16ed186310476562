#include "array/positions.h"

#include "catena/array/math.h"
#include "catena/array/reduction.h"

namespace catena {

Array integer_positions(Device device, const Array& indices) {
  CATENA_CHECK(DtypeError, is_int(indices.dtype()), "expected integer positions, got ",
               indices.dtype());
  CATENA_CHECK(DeviceError, indices.device() == device, "arrays on different devices: ", device,
               " and ", indices.device(), "; copy one with to(\"", device, "\") first");
  const bool fits = indices.dtype() == Dtype::kInt32 || indices.dtype() == Dtype::kInt64;
  return fits ? indices : indices.astype(Dtype::kInt64);
}

void check_positions(std::span<const PositionList> lists) {
  std::vector<const PositionList*> unknown;
  for (const PositionList& list : lists) {
    if (!list.in_range && list.array.size() > 0) unknown.push_back(&list);
  }
  if (unknown.empty()) return;
  // All extremes in one array: a single copy brings them to the host.
  const Array limits = Array::uninitialized({2 * int64_t(unknown.size())}, Dtype::kInt64,
                                            unknown.front()->array.device());
  for (size_t k = 0; k < unknown.size(); ++k) {
    const Array low = limits[2 * int64_t(k)], high = limits[2 * int64_t(k) + 1];
    amin(unknown[k]->array, {.dtype = Dtype::kInt64, .out = low});
    amax(unknown[k]->array, {.dtype = Dtype::kInt64, .out = high});
  }
  const auto values = limits.to_vector<int64_t>();
  for (size_t k = 0; k < unknown.size(); ++k) {
    const int64_t low = values[2 * k], high = values[2 * k + 1], extent = unknown[k]->extent;
    CATENA_CHECK(IndexError, low >= -extent && high < extent, "position ",
                 low < -extent ? low : high, " is out of bounds for axis ", unknown[k]->axis,
                 " of extent ", extent);
  }
}

void check_positions(const Array& positions, int64_t extent, int axis) {
  const PositionList list{positions, extent, axis, false};
  check_positions({&list, 1});
}

Array wrapped_positions(const Array& positions, int64_t extent, OutOfRange mode) {
  const Array p = positions.astype(Dtype::kInt64, false);
  switch (mode) {
    case OutOfRange::kWrap: return remainder(p, extent);
    case OutOfRange::kClip: return clip(p, 0, extent - 1);
    case OutOfRange::kRaise: return where(less(p, 0), add(p, extent), p);
  }
  return p;
}

}  // namespace catena
