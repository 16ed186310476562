// Numbers of the calls that use parameters, by which observers know what is used together.
#pragma once

#include <cstdint>

namespace catena {

// A function's forward or backward pass is about to use its parameters, on this thread.
void begin_use() noexcept;
// The number of the thread's last such call; no two calls have the same.
uint64_t current_use() noexcept;

}  // namespace catena
