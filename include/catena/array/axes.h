// Arguments that name axes. Negative axes count from the end.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#include "catena/core/shape.h"

namespace catena {

// No value, for an axis, a bound of a Slice, or another optional argument: all axes, the default.
inline constexpr std::nullopt_t none = std::nullopt;

// A bool that no number converts to: a number given here is a mistake.
class YesNo {
 public:
  template <std::same_as<bool> T>
  constexpr YesNo(T value) : value_(value) {}
  constexpr operator bool() const { return value_; }

 private:
  bool value_;
};

class Axis;
// What names an axis: an Axis, or a number (enumerations that convert to one, too), but not a bool.
template <class T>
concept AxisNumber = std::same_as<T, Axis> ||(std::integral<T> && !std::same_as<T, bool>) ||
                     (std::is_enum_v<T> && std::convertible_to<T, int64_t>);

// One axis. Each function checks its range (IndexError).
class Axis {
 public:
  template <AxisNumber T>
  constexpr Axis(T axis) : axis_(static_cast<int64_t>(axis)) {}
  constexpr operator int64_t() const { return axis_; }

 private:
  int64_t axis_;
};

// An axis that may be left out; each function documents what that means.
struct OptionalAxis : std::optional<int64_t> {
  OptionalAxis() = default;
  OptionalAxis(std::nullopt_t) {}
  template <AxisNumber T>
  OptionalAxis(T axis) : std::optional<int64_t>(static_cast<int64_t>(axis)) {}
  OptionalAxis(const std::optional<int64_t>& axis) : std::optional<int64_t>(axis) {}
};

// Axes. Accepts:
//   nothing, {} or none   no axes, which most functions take for all
//   0                     one axis
//   {0, 1}, a Shape, a std::vector of integers   several
class AxisList : public Axes {
 public:
  AxisList() = default;
  AxisList(std::nullopt_t) {}
  template <AxisNumber... T>
  requires(sizeof...(T) > 0) AxisList(T... axes) : Axes{static_cast<int64_t>(axes)...} {}
  // A template, because a number would match both this constructor and the one above.
  template <std::derived_from<std::optional<int64_t>> T>
  AxisList(const T& axis) {
    if (axis) push_back(*axis);
  }
  template <class T>
  requires std::convertible_to<const T&, Axes> AxisList(const T& axes) : Axes(axes) {}
};

// The axes that a reduction of arrays or variables removes, and whether they stay with extent 1
// (keepdims). Accepts:
//   an AxisList                                its axes; an empty list means all
//   {0, true}, {{0, 1}, true}, {none, true}    with keepdims
struct ReduceAxes {
  AxisList axes;          // empty: all
  bool keepdims = false;  // whether the axes stay, with extent 1

  template <AxisNumber... T>
  requires(sizeof...(T) > 0) ReduceAxes(T... list) : axes(list...) {}
  template <class T>
  requires std::constructible_from<AxisList, const T&> ReduceAxes(const T& list) : axes(list) {}
  ReduceAxes(AxisList list, YesNo keep = false) : axes(std::move(list)), keepdims(keep) {}
};

}  // namespace catena
