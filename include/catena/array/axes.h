// How a caller names axes: of a reduction ReduceAxes, of one axis an integer that is not a bool.
#pragma once

#include <concepts>
#include <optional>
#include <utility>

#include "catena/core/shape.h"

namespace catena {

// A yes or no that takes bools alone: a number in its place is a mistake.
class YesNo {
 public:
  template <std::same_as<bool> T>
  constexpr YesNo(T value) : value_(value) {}
  constexpr operator bool() const { return value_; }

 private:
  bool value_;
};

// A number that names an axis: true is none.
template <class T>
concept AxisNumber = std::integral<T> && !std::same_as<T, bool>;

// The axes that a reduction of arrays or variables removes, and whether they stay with extent 1
// (keepdims). In the place of one:
//   nothing, {} or none   all axes
//   0                     one axis; negative ones count from the end
//   {0, 1}                several
//   {0, true}, {{0, 1}, true}, {none, true}   with keepdims
struct ReduceAxes {
  Axes axes;              // empty: all
  bool keepdims = false;  // whether the axes stay, with extent 1

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
