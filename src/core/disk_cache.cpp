// See disk_cache.h. A file is a magic number, the hash of the value, and the value. It appears
// under its name as a whole (rename), and one lock file for each key serialises writers.
#include "core/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/new_file.h"

namespace catena {

namespace {

constexpr char kMagic[8] = {'c', 'a', 't', 'e', 'n', 'a', 'c', '1'};

// An exclusive lock on a file, or nothing if there is none and it cannot be created.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : file_(open_regular_file(path, O_RDWR | O_CREAT, 0644)) {
    if (file_ >= 0) {
      while (flock(file_, LOCK_EX) != 0 && errno == EINTR) {
      }
    }
  }
  ~FileLock() {
    if (file_ >= 0) close(file_);  // releases the lock
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool held() const { return file_ >= 0; }
  int file() const { return file_; }

 private:
  int file_;
};

bool read_all(int file, std::string& bytes) {
  char block[1 << 16];
  ssize_t count = 0;
  while ((count = ::read(file, block, sizeof(block))) > 0 || (count < 0 && errno == EINTR))
    if (count > 0) bytes.append(block, static_cast<size_t>(count));
  return count == 0;
}

}  // namespace

std::string DiskCache::path(const Hash128& key, const char* suffix) const {
  return values_folder() + "/" + to_hex(key) + suffix;
}

void DiskCache::count(uint64_t Uses::*which) const {
  const FileLock lock(cache_uses_file(folder_, kind_));
  if (!lock.held()) return;
  Uses now;
  if (pread(lock.file(), &now, sizeof(now), 0) != sizeof(now)) now = {};
  ++(now.*which);
  // A count that is not written is lost; nothing depends on it.
  [[maybe_unused]] const ssize_t written = pwrite(lock.file(), &now, sizeof(now), 0);
}

bool DiskCache::read(const Hash128& key, std::string& value, const Accept& accept) const {
  if (!find(key, value) || (accept && !accept(value))) return false;
  count(&Uses::hits);
  return true;
}

bool DiskCache::find(const Hash128& key, std::string& value) const {
  if (folder_.empty()) return false;
  const int file = open_regular_file(path(key, kind_.suffix), O_RDONLY);
  if (file < 0) return false;
  std::string bytes;
  const bool whole = read_all(file, bytes);
  close(file);
  constexpr size_t kHeader = sizeof(kMagic) + sizeof(Hash128);
  if (!whole || bytes.size() <= kHeader || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0)
    return false;
  Hash128 expected;
  std::memcpy(&expected, bytes.data() + sizeof(kMagic), sizeof(expected));
  value = bytes.substr(kHeader);
  return hash128(value) == expected;
}

void DiskCache::write(const Hash128& key, const std::string& value) const {
  const std::string target = path(key, kind_.suffix);
  remove_left_over_files(target);
  NewFile file(target, 0644);
  if (file.error() != 0) return;
  const Hash128 hash = hash128(value);
  // If the disk is full or read-only the next run compiles again; nothing else is lost.
  if (file.write(kMagic, sizeof(kMagic)) == 0 && file.write(&hash, sizeof(hash)) == 0 &&
      file.write(value.data(), value.size()) == 0 && file.close() == 0)
    file.rename(target);
}

std::string DiskCache::get(const Hash128& key, const Make& make, bool* made,
                           const Accept& accept) const {
  std::string value;
  *made = false;
  if (read(key, value, accept)) return value;
  *made = true;
  if (folder_.empty()) return make();
  std::error_code ignored;
  std::filesystem::create_directories(values_folder(), ignored);
  const FileLock lock(path(key, ".lock"));
  if (read(key, value, accept)) {  // another process was first
    *made = false;
    return value;
  }
  value = make();
  if (!value.empty()) write(key, value);
  count(&Uses::misses);
  return value;
}

}  // namespace catena
