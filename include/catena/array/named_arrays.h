// Arrays with names in a given order: states of optimizers, contents of archives, messages.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// Arrays with their names, in the order in which they were listed.
using NamedArrays = std::vector<std::pair<std::string, Array>>;

// The first array of this name: array_named(optimizer.state(), "m/l1/W"). IndexError that lists
// names if there is none.
const Array& array_named(const NamedArrays& arrays, std::string_view name);
// Not of a list that is gone at the end of the statement: copy the array.
Array array_named(NamedArrays&& arrays, std::string_view name);

}  // namespace catena
