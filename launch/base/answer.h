// Answer of a small program, if it gives one.
#pragma once

#include <string>
#include <vector>

namespace catena::launch {

// The output and the errors of a program that is started with these words, the first of which is
// its path. Throws UserError when it does not end within `seconds`, or when this process is asked
// to end meanwhile by SIGINT, SIGTERM or SIGHUP, also where they are blocked for a SignalQueue.
// By default it has the time that --version may take on a slow file server.
std::string answer_of(const std::vector<std::string>& words, double seconds = 30);

}  // namespace catena::launch
