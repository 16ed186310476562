#include "base/program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/text.h"

namespace catena::launch {
namespace {

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

bool is_file(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_executable(const std::string& path) {
  return is_file(path) && access(path.c_str(), X_OK) == 0;
}

std::uint64_t hash_bytes(const char* bytes, std::size_t size) {
  std::uint64_t hash = size;
  for (std::size_t at = 0; at < size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, size - at < 8 ? size - at : 8);
    hash = (hash ^ word) * 0x9e37'79b9'7f4a'7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

std::optional<std::string> find_executable(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return is_executable(name) ? std::optional(name) : std::nullopt;
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : kDefaultPath, ':')) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (is_executable(candidate)) return candidate;
  }
  return std::nullopt;
}

void set_default_path() { setenv("PATH", kDefaultPath, 0); }

std::string why_not_started(const std::string& name, int error) {
  const auto file = error == ENOENT ? find_executable(name) : std::nullopt;
  if (!file) return std::strerror(error);
  std::ifstream script(*file);
  std::string line;
  if (!std::getline(script, line) || !line.starts_with("#!"))
    return "the loader that it asks for is not there; was it built for another system?";
  if (line.ends_with('\r'))
    return "its first line ends with CR LF, as on Windows; try sed -i 's/\\r$//' " +
           shell_quote(*file);
  const std::vector<std::string> words = split_words(line.substr(2));
  return "its interpreter '" + (words.empty() ? "" : words.front()) + "' is not there";
}

void refuse_unrunnable(const std::string& name) {
  if (name.find('/') == std::string::npos || is_executable(name)) return;
  if (is_folder(name))
    throw UserError("program '" + name + "' is a folder; name the executable file in it", 126);
  if (is_file(name))
    throw UserError("program '" + name + "' is not executable; try chmod +x " + shell_quote(name),
                    126);
  if (access(name.c_str(), F_OK) == 0)
    throw UserError(
        "program '" + name + "' is a device, a pipe or a socket; name an executable file", 126);
}

void require_executable(const std::string& name) {
  if (find_executable(name)) return;
  refuse_unrunnable(name);
  std::string hint = "is not in PATH";
  if (name.find('/') != std::string::npos)
    hint = "does not exist";
  else if (is_file(name))
    hint += "; did you mean ./" + name + "?";
  throw UserError("program '" + name + "' " + hint, 127);
}

std::string file_digest(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0 || status.st_size == 0) {
    if (file >= 0) close(file);
    return "";
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (bytes == MAP_FAILED) return "";
  char text[64];
  std::snprintf(text, sizeof(text), "%zu-%016llx", size,
                static_cast<unsigned long long>(hash_bytes(static_cast<char*>(bytes), size)));
  munmap(bytes, size);
  return text;
}

}  // namespace catena::launch
