#include "wire/pipe_name.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace catena::launch {
namespace {

// "4567"; "" for what is not a pipe.
std::string number_of(int descriptor) {
  struct stat status {};
  const bool pipe = fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode);
  return pipe ? std::to_string(status.st_ino) : "";
}

}  // namespace

std::string name_pipe(int descriptor) {
  const std::string number = number_of(descriptor);
  if (number.empty()) return "";
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor) + ":" + number;
}

Descriptor open_pipe(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos) return {};
  const std::string path = name.substr(0, colon);
  Descriptor pipe(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string number = number_of(pipe.get());
  if (number.empty() || number != name.substr(colon + 1)) pipe.reset();
  return pipe;
}

}  // namespace catena::launch
