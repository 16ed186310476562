// Interface of the core to the pools that programs make (memory_pool.h).
#pragma once

#include "catena/core/memory.h"

namespace catena {

// Records the use of a block of such a pool by another stream; false for any other storage.
bool note_user_pool_use(const Storage& storage, const Stream& stream);

}  // namespace catena
