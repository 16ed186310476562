#include "catena/autograd/placement.h"

#include <algorithm>

#include "catena/core/error.h"

namespace catena {

bool Placement::is_cut() const {
  return std::any_of(over.begin(), over.end(),
                     [](const Over& one) { return one.kind == Kind::kCut; });
}

int64_t Placement::boxes() const {
  int64_t boxes = 1;
  for (const Over& one : over)
    if (has_box() && one.kind == Kind::kCut && one.axis >= 0) boxes *= one.count;
  return boxes;
}

namespace {

std::string name_of_axis(size_t axis) {
  if (axis < 2) return axis == 0 ? " rows" : " columns";
  return message(" along axis ", axis);
}

}  // namespace

std::string Placement::text(const Shape& local) const {
  if (boxes() == 1) return "";
  std::string text;
  for (size_t axis = 0; axis < whole.size(); ++axis)
    if (local[axis] != whole[axis])
      text += message(local[axis], " of ", whole[axis], name_of_axis(axis), ", ");
  for (const Over& one : over)
    if (one.kind == Kind::kCut)
      text += message(one.mesh_axis.empty() ? "ranks" : one.mesh_axis, " ", one.index, "/",
                      one.count, ", ");
  return text.substr(0, text.size() - 2);
}

bool Placement::is_elsewhere() const {
  return std::any_of(over.begin(), over.end(), [](const Over& one) {
    return one.kind == Kind::kHeld && one.holder != one.index;
  });
}

Placement cut_along(const Shape& local, int axis, int64_t begin, int64_t extent,
                    Placement::Over over) {
  CATENA_CHECK(ShapeError,
               axis >= 0 && size_t(axis) < local.size() && begin >= 0 &&
                   begin + local[size_t(axis)] <= extent,
               "cut_along: an array of shape ", local, " that begins at ", begin, " of ", extent,
               " elements along axis ", axis,
               " is not a part of it; give an axis of the array, and a begin at which it fits");
  Placement placement;
  placement.whole = local;
  placement.whole[size_t(axis)] = extent;
  placement.begin = Shape(local.size(), 0);
  placement.begin[size_t(axis)] = begin;
  over.kind = Placement::Kind::kCut;
  over.axis = axis;
  placement.over.push_back(std::move(over));
  return placement;
}

void check_box(const char* who, const std::string& named, const Shape& local,
               const Placement& placement) {
  if (!placement.has_box()) return;
  bool fits = placement.whole.size() == local.size() && placement.begin.size() == local.size();
  for (size_t axis = 0; fits && axis < local.size(); ++axis)
    fits =
        placement.begin[axis] >= 0 && placement.begin[axis] + local[axis] <= placement.whole[axis];
  CATENA_CHECK(ShapeError, fits, who, ": ", named, " has shape ", local,
               ", which is not a part of a whole of shape ", placement.whole, " from ",
               placement.begin, " on");
}

}  // namespace catena
