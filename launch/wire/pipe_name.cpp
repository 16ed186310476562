#include "wire/pipe_name.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/text.h"

namespace catena::launch {
namespace {

// "4567"; "" for what is not a pipe.
std::string number_of(int descriptor) {
  struct stat status {};
  const bool pipe = fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode);
  return pipe ? std::to_string(status.st_ino) : "";
}

// Of a machine from one start to the next, the same in all its containers.
std::string kernel() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

}  // namespace

std::string name_pipe(int descriptor) {
  const std::string number = number_of(descriptor);
  if (number.empty()) return "";
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor) + ":" + number +
         ":" + kernel();
}

Descriptor open_pipe(const std::string& name) {
  const std::vector<std::string> parts = split(name, ':');
  if (parts.size() != 3 || parts[2] != kernel()) return {};
  const std::string& path = parts[0];
  Descriptor pipe(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string number = number_of(pipe.get());
  if (number.empty() || number != parts[1]) pipe.reset();
  return pipe;
}

}  // namespace catena::launch
