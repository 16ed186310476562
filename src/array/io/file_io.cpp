#include "array/io/file_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "catena/array/io.h"
#include "catena/core/error.h"

namespace catena {
namespace io {
namespace {

constexpr size_t kLargestCall = size_t{1} << 30;  // Linux moves less than 2 GiB in one call

std::string system_text(int error_number) {
  char buffer[256];
  return strerror_r(error_number, buffer, sizeof buffer);  // the GNU form
}

// The file to which symbolic links lead, so that a rename replaces the file and not the link.
std::string resolve_links(const std::string& path) {
  std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), ::free);
  return resolved ? std::string(resolved.get()) : path;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The prefix of this host's temporary files for a target, without the folder: ".NAME.tmp.HOST.";
// the process and a number follow.
std::string temporary_prefix(const std::string& target) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string name = target.substr(target.rfind('/') + 1, 150);  // npos + 1 is 0
  return message(".", name, ".tmp.", std::string(host).substr(0, 64), ".");
}

std::string temporary_name(const std::string& target) {
  static std::atomic<unsigned> counter{0};
  return message(target.substr(0, target.rfind('/') + 1), temporary_prefix(target),
                 static_cast<long>(::getpid()), ".", counter.fetch_add(1));
}

// Files that processes of this host were writing for the same target when they were killed. Nobody
// else would ever remove them.
void remove_left_over(const std::string& target) {
  const std::string folder = folder_of(target), prefix = temporary_prefix(target);
  DIR* entries = ::opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    char* end = nullptr;
    const long process = std::strtol(entry->d_name + prefix.size(), &end, 10);
    if (process <= 0 || *end != '.') continue;
    if (::kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH) continue;
    const std::string path = folder + "/" + entry->d_name;
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) continue;
    // The lock is held by a process of another container with this host name that is still writing.
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
    ::close(file);
  }
  ::closedir(entries);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(resolve_links(path)) {
  struct stat status {};
  const bool exists = ::stat(target_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail_with("open it for writing", EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail_with("open it for writing", errno);
    return;
  }
  // The folder would allow the rename, but a read-only file must stay.
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail_with("open it for writing", errno);
  if (exists) remove_left_over(target_);  // reads the folder, so not for each of many new files
  temporary_ = temporary_name(target_);
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    const int reason = errno;
    temporary_.clear();
    fail_with("create a file in its folder", reason);
  }
  (void)!::flock(descriptor_, LOCK_EX | LOCK_NB);  // see remove_left_over
  if (exists) (void)!::fchmod(descriptor_, status.st_mode & 0777);
}

AtomicFile::~AtomicFile() { abandon(); }

void AtomicFile::abandon() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  descriptor_ = -1;
  temporary_.clear();
}

void AtomicFile::fail_with(const char* action, int error_number) {
  const char* hint = error_number == ENOENT   ? "; create the folder first"
                     : error_number == ENOSPC ? "; free some space and save again"
                                              : "";
  const char* old = temporary_.empty() ? "" : " (a file that was there before is unchanged)";
  abandon();  // because a constructor that throws runs no destructor
  fail<IoError>("writing '", path_, "': cannot ", action, ": ", system_text(error_number), hint,
                old);
}

void AtomicFile::write(const void* data, size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::write(descriptor_, next, std::min(bytes, kLargestCall));
    if (done < 0) {
      if (errno == EINTR) continue;
      fail_with("write", errno);
    }
    next += done;
    bytes -= static_cast<size_t>(done);
    position_ += static_cast<uint64_t>(done);
  }
}

void AtomicFile::commit() {
  // Devices and pipes do not support fsync.
  if (!temporary_.empty() && ::fsync(descriptor_) != 0) fail_with("flush it to the disk", errno);
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) fail_with("close it", errno);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_with("rename", errno);
  temporary_.clear();
  // Makes the rename itself durable. Some file systems cannot; the data is complete either way.
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)::fsync(folder);
    ::close(folder);
  }
}

InputFile::InputFile(const std::string& path) : path_(path) {
  // Non-blocking, so that a pipe without a writer is refused below and does not block.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail<IoError>("reading '", path, "': cannot open it: ", system_text(errno));
  struct stat status {};
  const bool regular = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    ::close(descriptor_);
    fail<IoError>("reading '", path, "': expected a regular file, found ",
                  S_ISDIR(status.st_mode) ? "a folder" : "a device or pipe");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read_at(uint64_t offset, void* destination, size_t bytes) const {
  CATENA_CHECK(IoError, offset <= size_ && bytes <= size_ - offset, "reading '", path_,
               "': ", bytes, " bytes expected at offset ", offset, ", but the file ends at ",
               size_);
  char* next = static_cast<char*>(destination);
  while (bytes > 0) {
    const ssize_t done =
        ::pread(descriptor_, next, std::min(bytes, kLargestCall), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    CATENA_CHECK(IoError, done >= 0, "reading '", path_, "' at offset ", offset, ": ",
                 system_text(errno));
    CATENA_CHECK(IoError, done > 0, "reading '", path_, "': it was cut at offset ", offset,
                 " while being read");
    next += done;
    offset += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
}

void Source::read(void* destination, size_t bytes) {
  CATENA_CHECK(IoError, bytes <= remaining(), "reading ", name_, ": ", bytes,
               " bytes expected at offset ", position_, ", but it ends at ", size_);
  read_some(destination, bytes);
  position_ += bytes;
}

std::string read_whole_file(const std::string& path) {
  const InputFile file(path);
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace io

void write_file_atomically(const std::string& path, const std::string& bytes) {
  io::AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace catena
