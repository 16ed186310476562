// See disk_cache.h. A file is a magic number, the hash of the key and the value, and the value. It
// appears under its name as a whole (rename), and one lock file for each key serialises writers.
#include "core/disk_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/lock_file.h"
#include "core/new_file.h"

namespace catena {

namespace {

constexpr char kMagic[8] = {'c', 'a', 't', 'e', 'n', 'a', 'c', '2'};

// An exclusive lock on a file of this user, or nothing where there is none and it cannot be made.
// Another user who can open the file could keep it locked for ever.
class CacheLock {
 public:
  explicit CacheLock(const std::string& path)
      : file_(path, O_RDWR | O_CREAT), is_held_(file_.is_private() && file_.lock() == 0) {}

  bool is_held() const { return is_held_; }
  int file() const { return file_.descriptor(); }

 private:
  LockFile file_;
  bool is_held_;
};

Hash128 hash_of(const Hash128& key, std::string_view value) {
  return hash128(to_hex(key).append(value));
}

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
  const CacheLock lock(cache_uses_file(folder_, kind_));
  if (!lock.is_held()) return;
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
  const bool whole = is_trusted(file) && read_all(file, bytes);
  close(file);
  constexpr size_t kHeader = sizeof(kMagic) + sizeof(Hash128);
  if (!whole || bytes.size() <= kHeader || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0)
    return false;
  Hash128 expected;
  std::memcpy(&expected, bytes.data() + sizeof(kMagic), sizeof(expected));
  value = bytes.substr(kHeader);
  return hash_of(key, value) == expected;
}

void DiskCache::write(const Hash128& key, const std::string& value) const {
  const std::string target = path(key, kind_.suffix);
  remove_left_over_files(target);
  NewFile file(target, 0644);
  if (file.error() != 0) return;
  const Hash128 hash = hash_of(key, value);
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
  const CacheLock lock(path(key, ".lock"));
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
