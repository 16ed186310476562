// ReduceAxes: how a caller names the axes of a reduction, of arrays and of variables.
#pragma once

#include <optional>
#include <utility>

#include "catena/array/array.h"

namespace catena {

// The axes that a reduction removes, and whether they stay with extent 1 (keepdims). In the place
// of one:
//   nothing, {} or none   all axes
//   0                     one axis; negative ones count from the end
//   {0, 1}                several
//   {0, true}, {{0, 1}, true}, {none, true}   with keepdims
struct ReduceAxes {
  Axes axes;  // empty: all
  bool keepdims = false;

  ReduceAxes() = default;
  template <AxisNumber T>
  ReduceAxes(T axis, YesNo keep = false) : axes{static_cast<int64_t>(axis)}, keepdims(keep) {}
  template <AxisNumber T, AxisNumber U, AxisNumber... More>
  ReduceAxes(T first, U second, More... more)
      : axes{static_cast<int64_t>(first), static_cast<int64_t>(second),
             static_cast<int64_t>(more)...} {}
  ReduceAxes(Axes list, YesNo keep = false) : axes(std::move(list)), keepdims(keep) {}
  ReduceAxes(std::nullopt_t, YesNo keep = false) : keepdims(keep) {}
};

}  // namespace catena
