// Events and memory of GPUs that are shared with another process.
#pragma once

#include "catena/core/backend.h"

namespace catena::gpu {

// See Backend.
Backend::IpcMemory export_memory(const Storage& storage, const void* memory);
StoragePtr import_memory(int index, const Backend::IpcMemory& memory, size_t bytes);
Backend::IpcEvent export_event(EventState* state);
EventState* import_event(int index, const Backend::IpcEvent& event);

}  // namespace catena::gpu
