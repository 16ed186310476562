// A folder for what mpirun leaves while it runs, so that nothing stays behind when it is killed.
#pragma once

#include <string>
#include <vector>

namespace catena::launch {

// Lives as long as the job. Made in the folder for temporary files; folders of launchers that were
// killed themselves are removed on the way.
class SessionFolder {
 public:
  // Throws UserError when the folder for temporary files cannot be written.
  SessionFolder();
  ~SessionFolder();
  SessionFolder(const SessionFolder&) = delete;
  SessionFolder& operator=(const SessionFolder&) = delete;
  // "" when none could be made: mpirun then uses its own.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
};

// Whether the user or the site has configured where Open MPI puts its files, in `mpi_args` or in
// the environment.
bool names_session_folder(const std::vector<std::string>& mpi_args,
                          const std::vector<std::string>& environment);

}  // namespace catena::launch
