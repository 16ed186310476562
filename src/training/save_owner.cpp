#include "training/save_owner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "array/io/file_io.h"
#include "catena/core/error.h"

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
void lock_soon(LockFile& file) {
  constexpr int kTries = 1000;
  for (int k = 0; k < kTries && file.try_lock() == EWOULDBLOCK; ++k)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

SaveOwner::SaveOwner(const std::string& unfinished)
    : file_(owner_file(unfinished), O_RDWR | O_CREAT | O_EXCL) {
  CATENA_CHECK(IoError, file_.error() == 0, "cannot make '", owner_file(unfinished),
               "': ", std::strerror(file_.error()));
  lock_soon(file_);
  // For errors only: they do without it.
  const std::string text = this_process();
  [[maybe_unused]] const auto written = ::write(file_.descriptor(), text.data(), text.size());
}

void SaveOwner::remove_from(const std::string& folder) { ::unlink(owner_file(folder).c_str()); }

std::string owner_of(const std::string& unfinished) {
  const std::string path = owner_file(unfinished);
  struct stat status {};
  LockFile file(path, O_RDWR);
  const bool is_gone = file.error() == 0 ? file.try_lock() != EWOULDBLOCK : file.error() != EACCES;
  if (is_gone || ::lstat(path.c_str(), &status) != 0) return "";
  if (status.st_uid != ::geteuid()) return message("user ", status.st_uid);
  try {
    const std::string text = io::read_whole_file(path);
    return text.empty() ? "another process" : text;
  } catch (const IoError&) {  // it has ended meanwhile
    return "";
  }
}

void require_no_other_save(const FolderNames& folder) {
  for (const std::string& unfinished : folder.all_unfinished()) {
    const std::string owner = owner_of(unfinished);
    CATENA_CHECK(IoError, owner.empty(), "'", unfinished, "' is being written by ", owner,
                 advice_on_two_folders(folder.path()));
  }
}

std::string advice_on_two_folders(const std::string& folder) {
  return message(": another CheckpointFolder saves to '", folder,
                 "'; give each run another folder, make one CheckpointFolder for it, and give it "
                 "the communicator of all ranks");
}

}  // namespace catena::training
