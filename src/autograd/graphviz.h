// Drawings by Graphviz's program `dot`.
#pragma once

#include <string>

namespace catena::detail {

// What `dot -Tsvg` makes of a text in its language. IoError if the program is not installed or
// fails.
std::string svg_of(const std::string& dot);

}  // namespace catena::detail
