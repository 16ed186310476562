// The save of a CheckpointFolder that runs behind training: a thread on each rank writes this
// rank's slices and says so in a file; rank 0's waits for those of all ranks and completes the
// checkpoint. The threads use no communicator.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "serializers/slice_writer.h"
#include "training/folder_names.h"
#include "training/rank_talk.h"
#include "training/save_owner.h"

namespace catena::training {

// What a save is to write, and where.
struct SavePlan {
  FolderNames names;       // of all checkpoints
  std::string unfinished;  // path of the one that is written
  std::string id;
  int64_t step = 0;
  int rank = 0, ranks = 1;
  std::vector<std::string> entries;
  int keep = 1;
  double timeout = 600;
  bool is_behind = true;                  // training goes on meanwhile
  std::shared_ptr<SaveOwner> owner = {};  // of the unfinished one, on rank 0
};

// The error of a rank that is late with its part.
std::string late_part(int rank, const SavePlan& plan);

// One save of one rank.
class CheckpointWriter {
 public:
  using Clock = std::chrono::steady_clock;

  // How far it is, in this order.
  enum class State : uint8_t {
    kPart,        // writes this rank's part
    kCompletion,  // the part is there, or has failed; rank 0 waits for the others' and completes
    kEnded,       // error() says whether well
  };

  // Begins to write what was staged, which must stay until the end; or, where staging has failed,
  // to tell the other ranks so.
  CheckpointWriter(SavePlan plan, std::shared_ptr<serializers::StagedSlices> staged,
                   RankError staging_error);
  // Waits for the end.
  ~CheckpointWriter();

  // Waits so many seconds until the checkpoint is complete, on rank 0; on others until this rank's
  // part is written. Why it is not, empty if it is; nothing where it has not ended.
  std::optional<std::string> wait_for_end(double seconds);
  State state() const { return state_; }
  bool is_running() const { return state_ != State::kEnded; }
  // Bytes of this rank's part that are written: a sign of life, as a new state is.
  int64_t written() const { return staged_->written(); }
  const SavePlan& plan() const { return plan_; }
  // Another rank has failed: waits no longer for it.
  void cancel(const std::string& reason);
  // The job has failed: waits for a rank without signs of life for so many seconds at most.
  void job_has_failed(double patience) { patience_ = patience; }
  double seconds() const { return seconds_; }  // that it took

 private:
  void run();
  void write_part();
  void complete();
  void gather_parts(serializers::SliceIndex& index);
  bool take_part_of(int rank, serializers::SliceIndex& index);
  void write_index(const serializers::SliceIndex& index) const;
  void require_not_cancelled();
  void end_part(const std::string& error);
  std::string explained(const std::string& error) const;

  SavePlan plan_;
  std::shared_ptr<serializers::StagedSlices> staged_;
  std::string error_;
  std::atomic<double> patience_{plan_.timeout};
  Clock::time_point start_ = Clock::now();
  std::atomic<State> state_{State::kPart};
  std::atomic<double> seconds_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string cancel_reason_;
  std::atomic<bool> cancelled_{false};
  std::thread thread_;
};

}  // namespace catena::training
