// What an index with arrays selects: the resolved form that get, put and add work on.
#pragma once

#include <span>
#include <vector>

#include "array/positions.h"

namespace catena {

struct Selection {
  Array base;                       // the basic entries applied; the axes of the arrays still there
  std::vector<PositionList> lists;  // list k goes along axes[k] of base
  std::vector<int> axes;            // ascending
  Shape broadcast;                  // of the lists
  int place = 0;                    // axes of the result before those of `broadcast`
  bool may_repeat = true;           // not for a mask alone

  Shape rest() const;   // extents of base's other axes
  Shape shape() const;  // of the result
};

// Applies NumPy's rules to the entries and looks whether positions are in range if the mode says
// so. Throws as index_get.
Selection resolve_selection(const Array& a, std::span<const AnyIndex> indices, OutOfRange mode);

}  // namespace catena
