#include "cli/prepare.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace catena::launch {

void run_prepare(const std::string& launcher) {
  const std::string tool = launcher.substr(0, launcher.rfind('/') + 1) + "catena-kernels";
  if (access(tool.c_str(), X_OK) != 0)
    throw UserError("--prepare: there is no " + tool +
                    ", as this build has no cuda plug-in; build catena on a machine with a CUDA "
                    "toolkit (12.8 or newer) and -DCATENA_CUDA=ON");
  execl(tool.c_str(), tool.c_str(), "--prepare", static_cast<char*>(nullptr));
  throw UserError("--prepare: " + tool + " cannot be started: " + std::strerror(errno));
}

}  // namespace catena::launch
