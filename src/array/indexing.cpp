#include "catena/array/indexing.h"

#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/array/slots.h"
#include "catena/core/memory_profile.h"

namespace catena {
namespace {

// Positions as contiguous 1-d int32 or int64 on the array's device.
Array flat_positions(const char* who, const Array& a, const Array& indices) {
  CATENA_CHECK(DtypeError, is_int(indices.dtype()), who, ": expected integer positions, got ",
               indices.dtype());
  check_same_device(who, a, indices);
  const bool fits = indices.dtype() == Dtype::kInt32 || indices.dtype() == Dtype::kInt64;
  return (fits ? indices : indices.astype(Dtype::kInt64)).contiguous().reshape({-1});
}

void check_range(const char* who, const Array& positions, int64_t extent) {
  if (positions.size() == 0) return;
  const auto low = amin(positions).item<int64_t>(), high = amax(positions).item<int64_t>();
  CATENA_CHECK(IndexError, low >= -extent && high < extent, who, ": position ",
               low < -extent ? low : high, " is out of bounds for an axis of extent ", extent);
}

}  // namespace

Array take(const Array& a, const Array& indices, std::optional<int64_t> axis, OutOfRange mode) {
  const CallScope scope("take");
  const Array x = (axis ? a : a.ravel()).contiguous();
  CATENA_CHECK(ShapeError, x.ndim() > 0, "take: expected at least one axis");
  const int ax = axis ? normalize_axis("take", *axis, x.ndim()) : 0;
  const Array positions = flat_positions("take", x, indices);
  const int64_t extent = x.shape()[ax];
  CATENA_CHECK(IndexError, extent > 0 || positions.size() == 0,
               "take: cannot take from an empty axis");
  if (mode == OutOfRange::kRaise) check_range("take", positions, extent);
  int64_t outer = 1, inner = 1;
  Shape shape;
  for (int i = 0; i < ax; ++i) {
    outer *= x.shape()[i];
    shape.push_back(x.shape()[i]);
  }
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  for (int i = ax + 1; i < x.ndim(); ++i) {
    inner *= x.shape()[i];
    shape.push_back(x.shape()[i]);
  }
  Array result = Array::uninitialized({outer, positions.size(), inner}, x.dtype(), x.device());
  if (result.size() > 0) {
    kernels::take(x.device(), x.reshape({outer, extent, inner}), positions,
                  static_cast<uint8_t>(mode), result);
  }
  return result.reshape(shape);
}

void scatter_add(const Array& a, const Array& indices, const Array& values, int64_t axis) {
  const int ax = normalize_axis("scatter_add", axis, a.ndim());
  CATENA_CHECK(ValueError, a.is_contiguous(), "scatter_add: expected a contiguous target");
  check_same_device("scatter_add", a, values);
  const Array positions = flat_positions("scatter_add", a, indices);
  check_range("scatter_add", positions, a.shape()[ax]);
  int64_t outer = 1, inner = 1;
  Shape shape(a.shape().begin(), a.shape().begin() + ax);
  for (int i = 0; i < ax; ++i) outer *= a.shape()[i];
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  for (int i = ax + 1; i < a.ndim(); ++i) {
    inner *= a.shape()[i];
    shape.push_back(a.shape()[i]);
  }
  const Array v = values.astype(a.dtype(), false).broadcast_to(shape).contiguous();
  if (v.size() == 0) return;
  kernels::scatter_add(a.device(), a.reshape({outer, a.shape()[ax], inner}), positions,
                       v.reshape({outer, positions.size(), inner}));
  a.note_write();
}

Array choose(const Array& a, std::span<const Array> choices) {
  CATENA_CHECK(ValueError, !choices.empty(), "choose: expected at least one choice");
  check_range("choose", flat_positions("choose", a, a), static_cast<int64_t>(choices.size()));
  std::vector<Array> all(choices.begin(), choices.end());
  all.push_back(a);
  const auto views = broadcast_arrays(all);
  Array result = views.front();
  for (size_t k = 1; k < choices.size(); ++k)
    result = where(equal(views.back(), static_cast<int64_t>(k)), views[k], result);
  return choices.size() == 1 ? result.copy() : result;
}

}  // namespace catena
