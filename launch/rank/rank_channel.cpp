#include "rank/rank_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "wire/pipe_name.h"

namespace catena::launch {
RankChannel::RankChannel(const std::string& pipe) : out_(open_pipe(pipe)), direct_(out_.open()) {
  if (!direct_) out_ = Descriptor(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  const Descriptor nothing(open("/dev/null", O_WRONLY | O_CLOEXEC));
  dup2(nothing.get(), STDERR_FILENO);
  set_nonblocking(out_.get());
}

void RankChannel::set_sender(std::string job, int rank) {
  job_ = std::move(job);
  rank_ = rank;
}

void RankChannel::send(Stream stream, std::string_view bytes) {
  queue_ += encode_frames(job_, rank_, stream, bytes);
  flush();
}

void RankChannel::flush() {
  while (!queue_.empty()) {
    // Whole blocks up to what a pipe takes as one piece: either all is written or nothing.
    const std::size_t size = std::min<std::size_t>(queue_.size(), 8 * kFrameSize);
    const ssize_t written = write(out_.get(), queue_.data(), size);
    if (written > 0) {
      queue_.erase(0, static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      queue_.clear();  // nobody listens any more
    }
  }
}

bool RankChannel::drain(double seconds) {
  const double deadline = monotonic_seconds() + seconds;
  for (;;) {
    flush();
    int unread = 0;
    const bool taken = direct_ || ioctl(out_.get(), FIONREAD, &unread) != 0 || unread == 0;
    if (queue_.empty() && taken) return true;
    if (monotonic_seconds() > deadline) return false;
    poll(nullptr, 0, 2);
  }
}

}  // namespace catena::launch
