#include "rank/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <cstdio>
#include <cstdlib>

namespace catena::launch {

Pipe open_terminal(const std::string& size) {
  Pipe pair{Descriptor(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), Descriptor()};
  if (!pair.read.open() || grantpt(pair.read.get()) != 0 || unlockpt(pair.read.get()) != 0)
    return make_pipe();
  pair.write = Descriptor(open(ptsname(pair.read.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pair.write.open()) return make_pipe();
  termios attributes{};
  tcgetattr(pair.write.get(), &attributes);
  attributes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  attributes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  tcsetattr(pair.write.get(), TCSANOW, &attributes);
  winsize window{};
  if (std::sscanf(size.c_str(), "%hux%hu", &window.ws_col, &window.ws_row) == 2)
    ioctl(pair.write.get(), TIOCSWINSZ, &window);
  return pair;
}

}  // namespace catena::launch
