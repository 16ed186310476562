// The built-in backend of CPU devices: a caching allocator; streams and events that are always
// done.
#pragma once

#include "catena/core/backend.h"

namespace catena {

Backend& cpu_backend();

// The allocation path of CPU arrays, without a virtual call.
StoragePtr cpu_allocate(Device device, size_t bytes);

}  // namespace catena
