// Texts from elsewhere on their way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace catena::comm {

// The text with everything that is not printable UTF-8 written as "\x1b": control characters of
// ASCII and Unicode but for newline and tab, and bytes that are no UTF-8. So a failure text cannot
// colour, move or answer on the terminal that shows it.
std::string printable(std::string_view text);

}  // namespace catena::comm
