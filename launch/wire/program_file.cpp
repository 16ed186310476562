#include "wire/program_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/text.h"

namespace catena::launch {
namespace {

// What catena-run adds, and quoting, has room in the rest.
constexpr std::size_t kMost = 100'000;

}  // namespace

bool is_long(const std::vector<std::string>& program) {
  std::size_t bytes = 0;
  for (const std::string& word : program) bytes += word.size() + 1;
  return bytes > kMost;
}

std::string keep_program(const std::vector<std::string>& program) {
  std::string bytes;
  for (const std::string& word : program) bytes += word + '\0';
  const int file = memfd_create("catena-run program", MFD_CLOEXEC);
  for (std::size_t done = 0; file >= 0 && done < bytes.size();) {
    const ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno != EINTR) break;
    if (written > 0) done += static_cast<std::size_t>(written);
    if (done == bytes.size())
      return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
  }
  throw UserError(std::string("the program's arguments cannot be kept: ") + std::strerror(errno));
}

std::vector<std::string> read_program(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (!file || bytes.empty())
    throw UserError("the program's arguments cannot be read from " + path + ": " +
                    std::strerror(errno));
  bytes.pop_back();
  return split(bytes, '\0');
}

}  // namespace catena::launch
