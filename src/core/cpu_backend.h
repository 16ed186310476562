// The built-in backend of CPU devices: a caching allocator; streams and events that are always
// done.
#pragma once

#include "catena/core/backend.h"

namespace catena {

Backend& cpu_backend();

// Its caching allocator. A block carries its Storage object in front of the data, so that an array
// of a recent size costs no call to malloc and no page faults, and CPU arrays no virtual call.
StoragePtr cpu_allocate(Device device, size_t bytes);
PoolStatistics cpu_pool_statistics(int index);
void cpu_pool_free_all();
void cpu_pool_set_limit(int index, size_t bytes);
void cpu_pool_reset_peak(int index);

}  // namespace catena
