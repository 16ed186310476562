#include "array/io/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

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

// What is neither a file nor a folder is written directly: /dev/stdout, a pipe with a reader.
int open_device(const std::string& path, const struct stat& status) {
  const bool is_foreign = status.st_uid != ::geteuid() && status.st_uid != 0;
  if (S_ISFIFO(status.st_mode) && is_foreign) return errno = EPERM, -1;
  // Without a reader a pipe would be waited for.
  const int file = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (file >= 0) (void)!::fcntl(file, F_SETFL, O_WRONLY);
  return file;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(path) {
  follow_links();
  struct stat status {};
  bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail_with("open it for writing", EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = open_device(path, status);
    if (descriptor_ < 0) fail_with("open it for writing", errno);
    return;
  }
  exists = ::stat(target_.c_str(), &status) == 0;
  // The folder would allow the rename, but a read-only file must stay.
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail_with("open it for writing", errno);
  if (exists) remove_left_over_files(target_);  // reads the folder, so not for each new file
  temporary_ = std::make_unique<NewFile>(target_, exists ? status.st_mode & 0777 : 0666, exists);
  if (const int error = temporary_->error()) {
    temporary_.reset();
    fail_with("create a file in its folder", error);
  }
}

AtomicFile::~AtomicFile() { abandon(); }

void AtomicFile::follow_links() {
  int error = 0;
  std::string culprit;
  target_ = follow_own_links(path_, &error, &culprit);
  CATENA_CHECK(IoError, error != EPERM, "writing '", path_, "': '", culprit,
               "' is a symbolic link that another user made, which is not followed; remove it, or "
               "give the name of a file");
  if (error != 0) fail_with("follow its symbolic links", error);
}

void AtomicFile::abandon() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  temporary_.reset();
}

void AtomicFile::fail_with(const char* action, int error_number) {
  const char* hint = error_number == ENOENT   ? "; create the folder first"
                     : error_number == ENOSPC ? "; free some space and save again"
                     : error_number == ENXIO ? "; it is a pipe without a reader, or a socket; give "
                                               "the name of a file"
                                             : "";
  const char* old = temporary_ ? " (a file that was there before is unchanged)" : "";
  abandon();  // because a constructor that throws runs no destructor
  fail<IoError>("writing '", path_, "': cannot ", action, ": ", system_text(error_number), hint,
                old);
}

void AtomicFile::write(const void* data, size_t bytes) {
  const int file = temporary_ ? temporary_->descriptor() : descriptor_;
  if (const int error = write_all(file, data, bytes)) fail_with("write", error);
  position_ += bytes;
}

void AtomicFile::commit() {
  if (!temporary_) {  // devices and pipes do not support fsync
    if (::close(std::exchange(descriptor_, -1)) != 0) fail_with("close it", errno);
    return;
  }
  if (const int error = temporary_->sync()) fail_with("flush it to the disk", error);
  if (const int error = temporary_->close()) fail_with("close it", error);
  if (const int error = temporary_->rename(target_)) fail_with("rename", error);
  temporary_.reset();
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
