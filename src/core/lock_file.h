// Files that a process locks to keep other processes out.
#pragma once

#include <string>

namespace catena {

// An open file and this process's lock on it, which is gone when the process is, however it ends.
// A lock of flock(2) lasts until the last copy of the descriptor is closed, and fork() makes
// copies. So the children of this process close theirs.
class LockFile {
 public:
  // Opens a regular file with open_regular_file(). A new file is open to this user alone: whoever
  // can open a file can keep it locked.
  LockFile(const std::string& path, int flags);
  ~LockFile();  // unlocks it, also for children that did not close it
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  // Why the file is not open; 0 if it is.
  int error() const { return error_; }
  // -1: it is not open, or was opened by the parent of this process.
  int descriptor() const { return descriptor_; }
  // Whether nobody but this user can have opened the file.
  bool is_private() const;
  // Locks the file against all others. An error number: EWOULDBLOCK where another one has the lock,
  // others where the file system has no locks.
  int try_lock();
  int lock();  // waits for it

 private:
  struct OpenFiles;
  static OpenFiles& open_files();
  static void close_in_child();

  int descriptor_ = -1;
  int error_ = 0;
};

}  // namespace catena
