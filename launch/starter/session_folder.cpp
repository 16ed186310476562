#include "starter/session_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/text.h"

namespace catena::launch {
namespace {

namespace fs = std::filesystem;

// Only folders of this name with this file in them are ever removed.
constexpr std::string_view kPrefix = ".catena-run-", kPlaces = "XXXXXX";
constexpr const char* kMarker = "made-by-catena-run";

bool is_session_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  std::error_code error;
  return name.size() == kPrefix.size() + kPlaces.size() && name.starts_with(kPrefix) &&
         fs::is_regular_file(fs::symlink_status(path / kMarker, error));
}

// Held while the folder is in use; the kernel lets go of it when the process ends, however it does.
int lock_folder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat status {};
  if (fstat(fd, &status) == 0 && status.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
    return fd;
  close(fd);
  return -1;
}

// A folder that has just been made and is not locked yet is younger than this.
bool is_old(const fs::path& path) {
  std::error_code error;
  const auto changed = fs::last_write_time(path, error);
  return !error && fs::file_time_type::clock::now() - changed > std::chrono::minutes(1);
}

void remove_abandoned(const fs::path& parent) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error))
    if (is_session_folder(entry->path())) found.push_back(entry->path());
  for (const fs::path& path : found) {
    if (!is_old(path)) continue;
    const int lock = lock_folder(path);
    if (lock < 0) continue;
    fs::remove_all(path, error);
    close(lock);
  }
}

}  // namespace

SessionFolder::SessionFolder() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  // A folder that is not there is made by mpirun.
  if (error) return;
  remove_abandoned(parent);
  std::string name =
      (fs::absolute(parent, error) / (std::string(kPrefix) + std::string(kPlaces))).string();
  // Open MPI makes sockets below it, whose paths the kernel limits to 108 bytes.
  constexpr std::size_t kLongest = 50;
  if (error || name.size() > kLongest) return;
  if (!mkdtemp(name.data()))
    throw UserError("files of mpirun cannot be written to '" + parent.string() +
                    "': " + std::strerror(errno) + "; set TMPDIR to a folder that can");
  path_ = name;
  lock_ = lock_folder(path_);
  std::ofstream(fs::path(path_) / kMarker) << "files of mpirun; catena-run removes this folder\n";
}

SessionFolder::~SessionFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
  if (lock_ >= 0) close(lock_);
}

bool names_session_folder(const std::vector<std::string>& mpi_args,
                          const std::vector<std::string>& environment) {
  constexpr const char* kParameter = "tmpdir_base";
  const auto names = [](const std::string& word) {
    return word.substr(0, word.find('=')).find(kParameter) != std::string::npos;
  };
  return std::any_of(mpi_args.begin(), mpi_args.end(), names) ||
         std::any_of(environment.begin(), environment.end(), names);
}

}  // namespace catena::launch
