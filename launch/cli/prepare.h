// catena-run --prepare: all standard GPU kernels are compiled before programs need them.
#pragma once

#include <string>

namespace catena::launch {

// Becomes catena-kernels --prepare, which is beside `launcher` in builds and installations that
// have the cuda plug-in. Throws UserError when it is not there.
[[noreturn]] void run_prepare(const std::string& launcher);

}  // namespace catena::launch
