// The argument of functions that take some axes of an array.
#pragma once

#include <concepts>
#include <initializer_list>

#include "catena/array/manipulation.h"

namespace catena::functions {

// Axes of a reduction: nothing or {} for all, one number, or a list.
struct AxisList {
  Axes axes;
  AxisList() = default;
  template <std::integral T>
  AxisList(T axis) : axes{static_cast<int64_t>(axis)} {}
  AxisList(std::initializer_list<int64_t> list) : axes(list) {}
  AxisList(const Axes& list) : axes(list) {}
};

}  // namespace catena::functions
