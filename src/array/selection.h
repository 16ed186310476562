// Selection by an index with arrays, in the resolved form that get, put and add use.
#pragma once

#include <span>
#include <vector>

#include "array/positions.h"

namespace catena {

struct Selection {
  Array base;                       // the basic entries applied; still has the axes of the arrays
  std::vector<PositionList> lists;  // list k indexes axes[k] of base
  std::vector<int> axes;            // ascending
  Shape broadcast;                  // of the lists
  int place = 0;                    // axes of the result before those of `broadcast`
  bool may_repeat = true;           // false for a single mask

  Shape rest() const;   // extents of base's other axes
  Shape shape() const;  // of the result
};

// Applies NumPy's rules to the entries, and checks whether positions are in range if the mode says
// so. Throws the same errors as index_get.
Selection resolve_selection(const Array& a, std::span<const AnyIndex> indices, OutOfRange mode);

}  // namespace catena
