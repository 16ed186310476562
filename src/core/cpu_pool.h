// Caching allocator of host memory: a block carries its Storage object in front of the data, so
// that an array of a recent size costs no call to malloc and no page faults.
#pragma once

#include "catena/core/memory.h"

namespace catena {

PoolStatistics cpu_pool_statistics(int index);
void cpu_pool_free_all();
void cpu_pool_set_limit(int index, size_t bytes);
void cpu_pool_reset_peak(int index);

}  // namespace catena
