// The counts of ranks_in_use.h.
#include "core/ranks_in_use.h"

namespace catena {

RanksInUse& ranks_in_use() {
  static RanksInUse one;
  return one;
}

}  // namespace catena
