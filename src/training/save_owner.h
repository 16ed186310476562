// Owner of the folder of a save: a locked file in it, which other CheckpointFolders of the same
// path see, in this job or in another one.
#pragma once

#include <string>

#include "core/lock_file.h"
#include "training/folder_names.h"

namespace catena::training {

// While it lives, the save belongs to this process and to no child of it. The lock goes with the
// process, however it ends. Where the file system has no locks there is none.
class SaveOwner {
 public:
  // Makes the file in the folder. IoError with the path and the system's reason.
  explicit SaveOwner(const std::string& unfinished);

  // Removes the file from the folder, which may have got another name.
  static void remove_from(const std::string& folder);

 private:
  LockFile file_;
};

// "process 12 on node3": who writes this folder of a save; "" if its writer is gone. "user 1001"
// for the folder of a user who keeps to himself whether the save still runs.
std::string owner_of(const std::string& unfinished);

// IoError while another CheckpointFolder saves to the folder of all checkpoints.
void require_no_other_save(const FolderNames& folder);

// What to do about two of them; ends an error.
std::string advice_on_two_folders(const std::string& folder);

}  // namespace catena::training
