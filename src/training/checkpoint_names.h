// The folders of checkpoints in a CheckpointFolder: their names, and how they come and go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace catena::training {

// "step-000000000100", and the hidden name under which the save `id` writes it.
std::string name_of_step(int64_t step);
std::string name_of_unfinished(int64_t step, const std::string& id);

// Steps of the folders of such names, whole or not, in ascending order.
std::vector<int64_t> steps_in(const std::string& folder);
// Folders of saves that did not end.
std::vector<std::string> unfinished_in(const std::string& folder);

// IoErrors with the path and the system's reason.
void sync_folder(const std::string& path);
// Gives a finished folder its name, in place of one that is there.
void publish(const std::string& folder, const std::string& unfinished, int64_t step);
// The steps of those that have the mark of a complete save.
std::vector<int64_t> complete_steps_in(const std::string& folder);
// Removes checkpoints of later steps, and all complete ones but the newest `keep`. What cannot be
// removed stays.
void remove_others(const std::string& folder, int64_t step, int keep);
// IoError while another CheckpointFolder saves there.
void remove_all_steps(const std::string& folder);

}  // namespace catena::training
