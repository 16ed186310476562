#include "job/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>

namespace catena::launch {

// O_NONBLOCK belongs to the open file, which the shell and other programs share: set on the
// original, it would surprise them. Opened again through /proc, the file is ours alone.
Output::Sink Output::make_sink(int fd) {
  Sink sink;
  sink.fd = fd;
  struct stat status {};
  if (fstat(fd, &status) != 0) return sink;
  sink.socket = S_ISSOCK(status.st_mode);
  // One that is open for reading alone (cli/main.cpp) shall fail.
  if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) return sink;
  if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return sink;
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  sink.own = Descriptor(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  sink.waits = !sink.own.open();
  return sink;
}

Output::Output(int output, int error) : sinks_{make_sink(output), make_sink(error)} {
  struct stat first {
  }, second{};
  same_file_ = fstat(output, &first) == 0 && fstat(error, &second) == 0 &&
               first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

int Output::fd() const {
  if (queue_.empty()) return -1;
  const Sink& sink = sink_of(queue_.front().stream);
  return sink.own.open() ? sink.own.get() : sink.fd;
}

void Output::add(Stream stream, std::string_view bytes) {
  if (bytes.empty() || sink_of(stream).dead || size_ > kMost) return;
  constexpr std::size_t kPiece = 64 * 1024;
  if (queue_.empty() || queue_.back().stream != stream || queue_.back().bytes.size() > kPiece)
    queue_.push_back({stream, ""});
  queue_.back().bytes += bytes;
  size_ += bytes.size();
  if (stream == Stream::output) mid_line_ = bytes.back() != '\n';
}

// No line end for standard output, whose text is that of rank 0, byte for byte.
void Output::add_last(std::string_view text, bool more_follows) {
  const bool any = more_follows || !text.empty();
  if (any && same_file_ && mid_line_) add(Stream::error, "\n");
  add(Stream::error, text);
}

long Output::write_some(const Sink& sink, std::string_view bytes) {
  if (sink.own.open()) return ::write(sink.own.get(), bytes.data(), bytes.size());
  if (sink.socket) return ::send(sink.fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (!sink.waits) return ::write(sink.fd, bytes.data(), bytes.size());
  pollfd room{sink.fd, POLLOUT, 0};
  if (poll(&room, 1, 0) == 1)
    return ::write(sink.fd, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
  errno = EAGAIN;
  return -1;
}

void Output::flush() {
  while (!queue_.empty()) {
    Piece& piece = queue_.front();
    Sink& sink = sink_of(piece.stream);
    const long written = write_some(sink, piece.bytes);
    if (written > 0) {
      piece.bytes.erase(0, static_cast<std::size_t>(written));
      size_ -= static_cast<std::size_t>(written);
      if (piece.bytes.empty()) queue_.pop_front();
    } else if (written < 0 && errno == EINTR) {
      continue;
    } else if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return;
    } else {
      const Stream stream = piece.stream;
      sink.dead = true;
      if (stream == Stream::output) failure_ = errno;
      drop(stream);
    }
  }
}

void Output::drain(SignalQueue& signals, double seconds) {
  double deadline = monotonic_seconds() + seconds;
  for (flush(); pending(); flush()) {
    if (monotonic_seconds() >= deadline) {
      drop(Stream::output);
      flush();
      return;
    }
    std::array<pollfd, 2> ready = {{{fd(), POLLOUT, 0}, {signals.fd(), POLLIN, 0}}};
    poll(ready.data(), ready.size(), 100);
    for (int signal = signals.next(); signal != 0; signal = signals.next())
      if (signal != SIGCHLD) deadline = monotonic_seconds();
  }
}

void Output::drop(Stream stream) {
  std::erase_if(queue_, [stream](const Piece& piece) { return piece.stream == stream; });
  size_ = 0;
  for (const Piece& piece : queue_) size_ += piece.bytes.size();
}

}  // namespace catena::launch
