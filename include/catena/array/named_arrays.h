// Arrays with names in a given order: states of optimizers, contents of archives, messages.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// Arrays with their names, in the order in which they were listed.
using NamedArrays = std::vector<std::pair<std::string, Array>>;

}  // namespace catena
