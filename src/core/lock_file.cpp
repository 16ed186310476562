#include "core/lock_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "catena/core/fork_mutex.h"
#include "core/new_file.h"

namespace catena {
// All of this process. Never destroyed: locks may be held until the very end.
struct LockFile::OpenFiles {
  ForkMutex mutex;
  std::vector<LockFile*> list;
};

LockFile::OpenFiles& LockFile::open_files() {
  const ForkScope no_fork;  // while the list is made: a child would wait for that for ever
  static auto* const files = [] {
    pthread_atfork(nullptr, nullptr, &close_in_child);
    return new OpenFiles;
  }();
  return *files;
}

// Runs in the only thread. fork() has waited until no other one changed the list.
void LockFile::close_in_child() {
  for (LockFile* file : open_files().list) {
    ::close(file->descriptor_);
    file->descriptor_ = -1;
  }
  open_files().list.clear();
}

LockFile::LockFile(const std::string& path, int flags) {
  const std::lock_guard lock(open_files().mutex);  // no fork() between opening and listing it
  descriptor_ = open_regular_file(path, flags, 0600);
  error_ = descriptor_ < 0 ? errno : 0;
  if (descriptor_ >= 0) open_files().list.push_back(this);
}

LockFile::~LockFile() {
  if (descriptor_ < 0) return;
  const std::lock_guard lock(open_files().mutex);
  std::erase(open_files().list, this);
  (void)::flock(descriptor_, LOCK_UN);
  ::close(descriptor_);
}

bool LockFile::is_private() const {
  struct stat status {};
  return descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0 && status.st_uid == ::geteuid() &&
         (status.st_mode & 0077) == 0 && status.st_nlink <= 1;
}

namespace {
int flock_again(int file, int operation) {
  while (::flock(file, operation) != 0)
    if (errno != EINTR) return errno;
  return 0;
}
}  // namespace

int LockFile::try_lock() { return flock_again(descriptor_, LOCK_EX | LOCK_NB); }
int LockFile::lock() { return flock_again(descriptor_, LOCK_EX); }

}  // namespace catena
