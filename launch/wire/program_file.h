// Command lines that mpirun could not hand on: it puts all words of a program into one string,
// which Linux limits to 128 KiB.
#pragma once

#include <string>
#include <vector>

namespace catena::launch {

// Whether these words are too many.
bool is_long(const std::vector<std::string>& program);

// Keeps the words in memory that other processes of this user and machine can read as a file, as
// long as this process lives. Returns its path.
std::string keep_program(const std::vector<std::string>& program);

// Throws UserError when it cannot be read.
std::vector<std::string> read_program(const std::string& path);

}  // namespace catena::launch
