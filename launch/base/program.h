// The program file.
#pragma once

#include <optional>
#include <string>

namespace catena::launch {

// As execvp would find it: a name with a slash as it is, else through PATH.
std::optional<std::string> find_executable(const std::string& name);

// For this process and those it starts, where PATH is not set: as find_executable looks then.
void set_default_path();

// Why execvp gave this error number, with the cause of an ENOENT for a file that is there.
std::string why_not_started(const std::string& name, int error);

// Throws UserError (exit code 127 or 126, as a shell) when `name` cannot be run.
void require_executable(const std::string& name);

// Like require_executable, but accepts a path that does not exist.
void refuse_unrunnable(const std::string& name);

// "size-hash" of the file's contents, "" when it cannot be read.
std::string file_digest(const std::string& path);

}  // namespace catena::launch
