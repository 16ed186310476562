// Loops over floats that were 16-bit floats and become such again, of operations whose loop over
// contiguous 16-bit floats is less exact than that of float32: so results do not depend on whether
// operands went through buffers. See tables.h for what it may include.
#pragma once

#include "backends/cpu/loops/levels.h"
#include "backends/cpu/loops/tables.h"

namespace catena::host {

struct NarrowTables {
  Loop loops[kElementwiseRows];  // null: that of float32
};
CATENA_DECLARE_LOOPS(NarrowTables)

}  // namespace catena::host
