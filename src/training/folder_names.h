// FolderNames: the folders of checkpoints in a CheckpointFolder, by name, and how they come and go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace catena::training {

// "step-000000000100".
std::string name_of_step(int64_t step);

// IoErrors have the path and the system's reason.
class FolderNames {
 public:
  // Of the folder of all checkpoints.
  explicit FolderNames(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Of a checkpoint, and of what the save `id` writes of it, under a hidden name.
  std::string path_of(int64_t step) const { return path_ + "/" + name_of_step(step); }
  std::string unfinished(int64_t step, const std::string& id) const;

  // Steps of the folders of such names, whole or not, in ascending order.
  std::vector<int64_t> steps() const;
  // The steps of those that have the mark of a complete save.
  std::vector<int64_t> complete_steps() const;
  // Folders of saves that did not end.
  std::vector<std::string> all_unfinished() const;

  // Gives a finished folder its name, in place of one that is there.
  void publish(const std::string& unfinished, int64_t step) const;
  // Removes checkpoints of later steps, and all complete ones but the newest `keep`. What cannot be
  // removed stays.
  void remove_others(int64_t step, int keep) const;
  // IoError while another CheckpointFolder saves there.
  void remove_all() const;

 private:
  bool remove(int64_t step) const;
  std::string removed(int64_t step) const;

  std::string path_;
};

}  // namespace catena::training
