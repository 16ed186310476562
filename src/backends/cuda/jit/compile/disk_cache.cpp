// The kernel cache on disk. See disk_cache.h. A file is a magic number, the hash of the value, and
// the value. It appears under its name as a whole (rename), and one lock file for each key
// serialises writers.
#include "backends/cuda/jit/compile/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace catena::jit {

namespace {

constexpr char kMagic[8] = {'c', 'a', 't', 'e', 'n', 'a', 'c', '1'};

// An exclusive lock on a file, or nothing if the file cannot be created.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
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

}  // namespace

std::string DiskCache::path(const Hash128& key, const char* suffix) const {
  return folder_ + "/kernels/" + to_hex(key) + suffix;
}

void DiskCache::count(uint64_t Uses::*which) const {
  const FileLock lock(cache_uses_file(folder_));
  if (!lock.held()) return;
  Uses now;
  if (pread(lock.file(), &now, sizeof(now), 0) != sizeof(now)) now = {};
  ++(now.*which);
  // A count that is not written is lost; nothing depends on it.
  [[maybe_unused]] const ssize_t written = pwrite(lock.file(), &now, sizeof(now), 0);
}

bool DiskCache::read(const Hash128& key, std::string& value) const {
  if (!find(key, value)) return false;
  count(&Uses::hits);
  return true;
}

bool DiskCache::find(const Hash128& key, std::string& value) const {
  if (folder_.empty()) return false;
  std::ifstream file(path(key, ".cubin"), std::ios::binary);
  if (!file) return false;
  char magic[8];
  Hash128 expected;
  file.read(magic, sizeof(magic));
  file.read(reinterpret_cast<char*>(&expected), sizeof(expected));
  if (!file || std::memcmp(magic, kMagic, sizeof(kMagic)) != 0) return false;
  std::ostringstream rest;
  rest << file.rdbuf();
  value = std::move(rest).str();
  return !value.empty() && hash128(value) == expected;
}

void DiskCache::write(const Hash128& key, const std::string& value) const {
  static std::atomic<unsigned> counter{0};
  const std::string temporary =
      path(key, ".tmp") + std::to_string(getpid()) + "_" + std::to_string(counter++);
  std::ofstream file(temporary, std::ios::binary);
  const Hash128 hash = hash128(value);
  file.write(kMagic, sizeof(kMagic));
  file.write(reinterpret_cast<const char*>(&hash), sizeof(hash));
  file.write(value.data(), static_cast<std::streamsize>(value.size()));
  file.close();
  // If the disk is full or read-only the next run compiles again; nothing else is lost.
  if (!file || std::rename(temporary.c_str(), path(key, ".cubin").c_str()) != 0)
    std::remove(temporary.c_str());
}

std::string DiskCache::get(const Hash128& key, const std::function<std::string()>& make,
                           bool* made) const {
  std::string value;
  *made = false;
  if (read(key, value)) return value;
  if (!folder_.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(folder_ + "/kernels", ignored);
    const FileLock lock(path(key, ".lock"));
    if (read(key, value)) return value;  // another process was first
    value = make();
    *made = true;
    write(key, value);
    count(&Uses::misses);
    return value;
  }
  *made = true;
  return make();
}

}  // namespace catena::jit
