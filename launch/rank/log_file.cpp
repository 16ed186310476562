#include "rank/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace catena::launch {

void LogFile::open(const std::string& path, const std::string& host) {
  path_ = path;
  file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file_.open())
    throw UserError("cannot write log file '" + path + "' on host " + host + ": " +
                    std::strerror(errno) + "; give another --log-dir");
}

void LogFile::add(Stream stream, std::string_view bytes) {
  if (!file_.open()) return;
  std::string& rest = unfinished_[stream == Stream::output ? 0 : 1];
  rest += bytes;
  std::string lines;
  std::size_t begin = 0;
  for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
    lines.append(shown_of_line(std::string_view(rest).substr(begin, end - begin))).append("\n");
    begin = end + 1;
  }
  rest.erase(0, begin);
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
