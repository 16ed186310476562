#pragma once

#include <string>

#include "base/process.h"

namespace catena::launch {

// A terminal for rank 0, when catena-run has one of this size ("120x40"): the program then draws
// its bar as it would without a launcher. Bytes pass unchanged. A pipe where there are no
// terminals.
Pipe open_terminal(const std::string& size);

}  // namespace catena::launch
