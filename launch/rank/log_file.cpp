#include "rank/log_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace catena::launch {
namespace {

// Made by this user or root.
bool is_own_link(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode) && status.st_uid == geteuid();
}

// Why a file was not opened, or cannot be emptied; "" when it is empty now, and locked as long as
// it is open. Reads errno.
std::string empty_regular_file(const Descriptor& file) {
  if (!file.open() && errno == ELOOP) return "it is a symbolic link of another user";
  if (!file.open() && errno != ENXIO) return std::strerror(errno);
  struct stat status {};
  if (!file.open() || fstat(file.get(), &status) != 0) return "it is not a regular file";
  if (S_ISCHR(status.st_mode)) return "";  // only the administrator makes devices
  if (!S_ISREG(status.st_mode)) return "it is not a regular file";
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return "a rank of another job writes it (or its host is lost: then remove it)";
  return ftruncate(file.get(), 0) == 0 ? "" : std::strerror(errno);
}

}  // namespace

void LogFile::open(const std::string& path, const std::string& host) {
  path_ = path;
  // In a folder that others may write, the name may be their link to a file of this user, or a
  // pipe.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC;
  const int follow = is_own_link(path) ? 0 : O_NOFOLLOW;
  file_ = Descriptor(::open(path.c_str(), kFlags | follow, 0666));
  const std::string problem = empty_regular_file(file_);
  if (!problem.empty())
    throw UserError("cannot write log file '" + path + "' on host " + host + ": " + problem +
                    "; give another --log-dir");
}

void LogFile::add(Stream stream, std::string_view bytes) {
  if (!file_.open()) return;
  std::string& rest = unfinished_[stream == Stream::output ? 0 : 1];
  std::string lines;
  for (const std::string& line : take_lines(rest, bytes)) lines += shown_of_line(line) + "\n";
  // A bar is drawn for hours, and a line without end is written in pieces.
  constexpr std::size_t kLongLine = 64 * 1024;
  if (rest.size() > kLongLine) rest = shown_of_line(rest);
  if (rest.size() > kLongLine) {
    lines += rest;
    rest.clear();
  }
  write(lines);
}

void LogFile::finish() {
  for (std::string& rest : unfinished_) {
    write(shown_of_line(rest));
    rest.clear();
  }
}

void LogFile::write(std::string_view bytes) {
  while (!bytes.empty() && problem_.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written > 0)
      bytes.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      problem_ = "the log " + path_ + " ends early: " + std::strerror(errno);
  }
}

}  // namespace catena::launch
