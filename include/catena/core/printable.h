// Texts from elsewhere on their way to a terminal: names in files, words of other processes.
#pragma once

#include <string>
#include <string_view>

namespace catena {

// The text with everything that is not printable UTF-8 written as "\x1b": control characters of
// ASCII and Unicode but for newline and tab, invisible characters, those that turn the direction of
// text, and bytes that are not UTF-8. So a text cannot colour, move or answer on the terminal that
// shows it, nor look like another one by characters that are not seen. Errors and log lines of the
// library are printable.
std::string printable(std::string_view text);
// The same as one line: newlines and tabs are escaped, too. For names in tables.
std::string printable_line(std::string_view text);

}  // namespace catena
