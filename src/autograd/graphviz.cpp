#include "autograd/graphviz.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "catena/core/error.h"

extern char** environ;

namespace catena::detail {
namespace {

// A file in memory. The program reads and writes such files and not pipes, so that neither side
// ever waits for the other.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("catena-graph", MFD_CLOEXEC)) { require(descriptor_); }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  void write(const std::string& text) {
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(descriptor_, text.data() + done, text.size() - done);
      if (n > 0) done += size_t(n);
      if (n < 0 && errno != EINTR) require(-1);
    }
    require(::lseek(descriptor_, 0, SEEK_SET));
  }
  std::string read() {
    require(::lseek(descriptor_, 0, SEEK_SET));
    std::string text;
    std::array<char, 65536> part;
    while (true) {
      const ssize_t n = ::read(descriptor_, part.data(), part.size());
      if (n == 0) return text;
      if (n > 0) text.append(part.data(), size_t(n));
      if (n < 0 && errno != EINTR) require(-1);
    }
  }

 private:
  static void require(off_t result) {
    CATENA_CHECK(IoError, result >= 0,
                 "dump: cannot hand the graph to the program dot: ", std::strerror(errno));
  }
  int descriptor_;
};

// Starts `dot -Tsvg` with these standard files; its process, or 0 with errno set.
pid_t start(const MemoryFile& in, const MemoryFile& out, const MemoryFile& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  const char* const arguments[] = {"dot", "-Tsvg", nullptr};
  pid_t process = 0;
  errno = ::posix_spawnp(&process, "dot", &actions, nullptr, const_cast<char* const*>(arguments),
                         environ);
  posix_spawn_file_actions_destroy(&actions);
  return errno == 0 ? process : 0;
}

// Whether the process has ended well; also where the program ignores SIGCHLD, and nobody knows.
bool ends_well(pid_t process) {
  int status = 0;
  pid_t result;
  do {
    result = ::waitpid(process, &status, 0);
  } while (result < 0 && errno == EINTR);
  return result < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

std::string svg_of(const std::string& dot) {
  MemoryFile in, out, errors;
  in.write(dot);
  const pid_t process = start(in, out, errors);
  CATENA_CHECK(IoError, process != 0, "dump: drawing as svg needs Graphviz's program dot, which ",
               errno == ENOENT ? std::string("is not in PATH")
                               : message("cannot be started: ", std::strerror(errno)),
               "; install the package graphviz, or use dump(\"dot\") and draw it elsewhere");
  const bool well = ends_well(process);
  const std::string svg = out.read();
  CATENA_CHECK(IoError, well && !svg.empty(), "dump: the program dot failed: ", errors.read());
  return svg;
}

}  // namespace catena::detail
