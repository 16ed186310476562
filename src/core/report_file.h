// Files that a program asks for and people read: traces, pictures.
#pragma once

#include <string>

namespace catena {

// IoError that begins with `what` where write_report would fail: another user's link, a device, a
// folder that is not there or cannot be written.
void check_report(const char* what, const std::string& name);
// Writes the file in one step, so that it is never seen half written. A file that is there is
// replaced; where `name` is a link, the file that it leads to. IoError.
void write_report(const char* what, const std::string& name, const std::string& text);

}  // namespace catena
