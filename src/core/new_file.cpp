#include "core/new_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

namespace catena {
namespace {

constexpr size_t kLargestCall = size_t{1} << 30;  // Linux moves less than 2 GiB in one call
constexpr int kAttempts = 100;                    // names that are tried
constexpr int kLongestChain = 40;                 // of links, as the kernel's
constexpr time_t kPatience = 60;  // seconds after which an unlocked file counts as left behind

// ".NAME.tmp.", of which a random part makes the name of a new file.
std::string prefix_of(const std::string& target) {
  return "." + target.substr(target.rfind('/') + 1, 150) + ".tmp.";  // npos + 1 is 0
}

// Random numbers serve against names that others guess; where the kernel has none, O_EXCL still
// keeps the files of processes apart.
std::string random_part() {
  static std::atomic<uint64_t> counter{0};
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    number = (uint64_t(now.tv_nsec) << 32) ^ (uint64_t(::getpid()) << 16) ^ counter.fetch_add(1);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

bool is_of_this_user_or_root(uid_t owner) { return owner == ::geteuid() || owner == 0; }

bool is_left_over(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
         status.st_mtime + kPatience < ::time(nullptr) && ::flock(file, LOCK_EX | LOCK_NB) == 0;
}

// What the link at `path` says; empty with errno if it cannot be read.
std::string read_link(const std::string& path) {
  char text[4096];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size > 0 ? std::string(text, size_t(size)) : std::string();
}

}  // namespace

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

int write_all(int descriptor, const void* data, size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::write(descriptor, next, std::min(bytes, kLargestCall));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    next += done;
    bytes -= static_cast<size_t>(done);
  }
  return 0;
}

NewFile::NewFile(const std::string& target, unsigned mode, bool exact_mode) {
  const std::string beginning = target.substr(0, target.rfind('/') + 1) + prefix_of(target);
  for (int i = 0; i < kAttempts; ++i) {
    path_ = beginning + random_part();
    if (create(mode)) break;
    if (error_ != EEXIST) break;
  }
  if (descriptor_ < 0) path_.clear();
  if (descriptor_ >= 0 && exact_mode) (void)!::fchmod(descriptor_, mode_t(mode));
}

// EEXIST, so that another name is tried, also if somebody removed the file before it was locked.
bool NewFile::create(unsigned mode) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  descriptor_ = ::open(path_.c_str(), kFlags, mode_t(mode));
  error_ = descriptor_ < 0 ? errno : 0;
  if (descriptor_ < 0) return false;
  const bool taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct stat status {};
  if (!taken && (::fstat(descriptor_, &status) != 0 || status.st_nlink > 0)) return true;
  ::close(std::exchange(descriptor_, -1));
  error_ = EEXIST;
  return false;
}

NewFile::~NewFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

int NewFile::sync() { return ::fsync(descriptor_) == 0 ? 0 : errno; }
int NewFile::close() { return ::close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno; }

int NewFile::rename(const std::string& target) {
  if (::rename(path_.c_str(), target.c_str()) != 0) return errno;
  path_.clear();
  return 0;
}

void remove_left_over_files(const std::string& target) {
  const std::string folder = folder_of(target), prefix = prefix_of(target);
  DIR* entries = ::opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = ::readdir(entries)) {
    if (!std::string_view(entry->d_name).starts_with(prefix)) continue;
    const std::string path = folder + "/" + entry->d_name;
    const int file = open_regular_file(path, O_WRONLY);
    if (file < 0) continue;
    if (is_left_over(file)) ::unlink(path.c_str());
    ::close(file);
  }
  ::closedir(entries);
}

std::string follow_own_links(const std::string& path, int* error, std::string* culprit) {
  std::string at = path;
  *error = 0;
  for (int i = 0; i < kLongestChain; ++i) {
    struct stat status {};
    if (::lstat(at.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return at;
    *culprit = at;
    *error = is_of_this_user_or_root(status.st_uid) ? 0 : EPERM;
    if (*error != 0) return at;
    const std::string next = read_link(at);
    *error = next.empty() ? errno : 0;
    if (*error != 0) return at;
    at = next[0] == '/' ? next : at.substr(0, at.rfind('/') + 1) + next;
  }
  *error = ELOOP;
  return at;
}

int open_regular_file(const std::string& path, int flags, unsigned mode) {
  // Non-blocking, so that a pipe is refused below and not waited for.
  const int file = ::open(path.c_str(), flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, mode_t(mode));
  if (file < 0) return -1;
  struct stat status {};
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) return file;
  ::close(file);
  errno = EINVAL;
  return -1;
}

bool is_trusted(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && is_of_this_user_or_root(status.st_uid) &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace catena
