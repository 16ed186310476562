// Text of the C++ run-time library about an uncaught exception.
#pragma once

#include <string>

namespace catena::launch {

// "std::runtime_error: boom" from the lines
//   terminate called after throwing an instance of 'std::runtime_error'
//     what():  boom
// "" when they are not there.
std::string exception_text(const std::string& standard_error);

}  // namespace catena::launch
