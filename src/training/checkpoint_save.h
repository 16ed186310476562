// Saves of a CheckpointFolder on one rank: the ranks meet, copy what each is to write, and a thread
// writes it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catena/training/checkpoint_folder.h"
#include "training/checkpoint_meeting.h"

namespace catena::training {

// One save at a time: none is there (no writer), or it is written (CheckpointWriter::State) and has
// ended when the ranks next meet. One that a silent disk keeps is left behind. All ranks call the
// functions together, those of CheckpointFolder that have their names.
class CheckpointSaves {
 public:
  CheckpointSaves(const FolderNames& names, const RankTalk& ranks,
                  const CheckpointFolderOptions& options)
      : names_(names), ranks_(ranks), options_(options) {}
  ~CheckpointSaves();

  // Begins a save, and returns whether it did. `is_behind`: training goes on meanwhile.
  bool begin(const serializers::Checkpoint& state, int64_t step, bool is_behind);
  void wait();
  void reserve(const serializers::Checkpoint& state);
  // Waits for the end of a save whose checkpoint will be removed: how it ends does not matter.
  void abandon();
  // A step was loaded that may not be the newest: the next save may replace newer ones.
  void note_load() { last_ = Last::kLoad; }
  CheckpointFolder::Times times() const;

 private:
  // The parts of this rank, and how it comes to a save of them.
  struct Coming {
    serializers::TensorParts parts;
    Arrival arrival;
  };
  Coming come_with(const serializers::Checkpoint& state) const;
  std::vector<Arrival> meet(const Arrival& own) const;
  std::vector<std::vector<serializers::TensorSlice>> slices_of_all(
      const serializers::TensorParts& parts) const;
  void make_plan(const serializers::TensorParts& parts, const std::vector<Arrival>& all);
  void compare_at(int64_t step, const serializers::TensorParts& parts);
  std::string begin_folder(int64_t step, std::shared_ptr<SaveOwner>& owner) const;
  void require_shared(const std::string& unfinished) const;
  void start_writer(const serializers::TensorParts& parts, SavePlan plan);
  // How a save has ended on all ranks. Given up: a rank has not ended.
  struct End {
    std::vector<std::string> errors;
    bool is_given_up = false;
  };
  End meet_until_end();
  Ending ending_here() const;
  [[noreturn]] void fail_with(const std::vector<std::string>& errors, double to_end);

  // What was done last with the folder, by all ranks.
  enum class Last : uint8_t { kNothing, kSave, kLoad };

  const FolderNames& names_;
  const RankTalk& ranks_;
  const CheckpointFolderOptions& options_;
  std::shared_ptr<serializers::StagedSlices> staged_ =
      std::make_shared<serializers::StagedSlices>();
  std::unique_ptr<CheckpointWriter> writer_;
  int64_t step_ = 0;  // of the last save
  Last last_ = Last::kNothing;
  std::vector<int64_t> compared_;  // steps at which it was compared what ranks hold in common
  CheckpointFolder::Times times_;
  // The pieces of this rank, as long as all ranks come with these slices.
  std::vector<uint64_t> hashes_;
  std::vector<serializers::Piece> pieces_;
};

}  // namespace catena::training
