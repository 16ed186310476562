// Records the programs that the cuda plug-in would need for calls of the CPU's slots, so that the
// core of the kernel bundle is tested without a GPU.
#pragma once

#include <map>
#include <string>

namespace catena::jit {

// Puts recorders before the CPU's providers, once in a process.
void record_requests();
// What was requested since the last call: texts of programs and, for messages, what they are.
std::map<std::string, std::string> take_requests();

}  // namespace catena::jit
