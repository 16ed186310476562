#include "training/save_owner.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "array/io/file_io.h"
#include "catena/core/error.h"
#include "training/checkpoint_names.h"

namespace catena::training {
namespace {

std::string owner_file(const std::string& folder) { return folder + "/.owner"; }

std::string this_process() {
  char host[256] = "";
  (void)::gethostname(host, sizeof host - 1);
  return message("process ", ::getpid(), " on ", host);
}

// owner_of() of another process holds the lock for a moment. Without the limit a file system whose
// locks hang would keep the save.
void lock_soon(int file) {
  constexpr int kTries = 1000;
  for (int k = 0; k < kTries; ++k) {
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) return;
    if (errno != EWOULDBLOCK && errno != EINTR) return;  // no locks here
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

SaveOwner::SaveOwner(const std::string& unfinished) {
  const std::string path = owner_file(unfinished), text = this_process();
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  CATENA_CHECK(IoError, file_ >= 0, "cannot make '", path, "': ", std::strerror(errno));
  lock_soon(file_);
  // For errors only: they do without it.
  [[maybe_unused]] const auto written = ::write(file_, text.data(), text.size());
}

// Processes that were forked meanwhile have the file open too, and must not keep the lock.
SaveOwner::~SaveOwner() {
  (void)::flock(file_, LOCK_UN);
  ::close(file_);
}

void SaveOwner::remove_from(const std::string& folder) { ::unlink(owner_file(folder).c_str()); }

std::string owner_of(const std::string& unfinished) {
  const std::string path = owner_file(unfinished);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return "";
  const bool is_locked = ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  if (!is_locked) return "";
  try {
    const std::string text = io::read_whole_file(path);
    return text.empty() ? "another process" : text;
  } catch (const IoError&) {  // it has ended meanwhile
    return "";
  }
}

void require_no_other_save(const std::string& folder) {
  for (const std::string& unfinished : unfinished_in(folder)) {
    const std::string owner = owner_of(unfinished);
    CATENA_CHECK(IoError, owner.empty(), "'", unfinished, "' is being written by ", owner,
                 advice_on_two_folders(folder));
  }
}

std::string advice_on_two_folders(const std::string& folder) {
  return message(": another CheckpointFolder saves to '", folder,
                 "'; give each run another folder, make one CheckpointFolder for it, and give it "
                 "the communicator of all ranks");
}

}  // namespace catena::training
