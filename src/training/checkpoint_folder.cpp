#include "catena/training/checkpoint_folder.h"

#include "training/checkpoint_loader.h"
#include "training/checkpoint_save.h"

namespace catena::training {

using serializers::Checkpoint;

// The ranks, and what each does with the folder of checkpoints.
struct CheckpointFolder::Impl {
  FolderNames names;
  RankTalk ranks;
  CheckpointFolderOptions options;
  CheckpointSaves saves{names, ranks, options};

  RankTalk::Call call(const char* name) { return RankTalk::Call(ranks, name); }
};

CheckpointFolder::CheckpointFolder(const std::string& path, Communicator* comm,
                                   const CheckpointFolderOptions& options)
    : impl_(new Impl{FolderNames(path), RankTalk(comm), options}) {
  CATENA_CHECK(ValueError, !path.empty(), "CheckpointFolder: the path is empty");
  CATENA_CHECK(ValueError, options.keep >= 1, "CheckpointFolder: .keep is ", options.keep,
               ", expected at least 1");
  CATENA_CHECK(ValueError, options.timeout > 0, "CheckpointFolder: .timeout is ", options.timeout,
               ", expected seconds above 0");
}
CheckpointFolder::~CheckpointFolder() = default;

const std::string& CheckpointFolder::path() const { return impl_->names.path(); }
std::vector<int64_t> CheckpointFolder::steps() const { return impl_->names.complete_steps(); }
CheckpointFolder::Times CheckpointFolder::times() const { return impl_->saves.times(); }

void CheckpointFolder::save(const Checkpoint& state, int64_t step) {
  const auto call = impl_->call("CheckpointFolder::save");
  impl_->saves.begin(state, step, false);
  impl_->saves.wait();
}

bool CheckpointFolder::save_async(const Checkpoint& state, int64_t step) {
  const auto call = impl_->call("CheckpointFolder::save_async");
  return impl_->saves.begin(state, step, true);
}

void CheckpointFolder::wait() {
  const auto call = impl_->call("CheckpointFolder::wait");
  impl_->saves.wait();
}

void CheckpointFolder::reserve(const Checkpoint& state) {
  const auto call = impl_->call("CheckpointFolder::reserve");
  impl_->saves.reserve(state);
}

bool CheckpointFolder::has_checkpoint() const {
  const auto call = impl_->call("CheckpointFolder::has_checkpoint");
  return impl_->ranks.decided_by_first("CheckpointFolder::has_checkpoint", [this] {
    return std::string(steps().empty() ? "no" : "yes");
  }) == "yes";
}

int64_t CheckpointFolder::load(const Checkpoint& state) {
  const auto call = impl_->call("CheckpointFolder::load");
  const int64_t step = CheckpointLoader(impl_->names, impl_->ranks).load(state);
  impl_->saves.note_load();  // newer ones that are not whole may be there
  return step;
}

void CheckpointFolder::load(const Checkpoint& state, int64_t step) {
  const auto call = impl_->call("CheckpointFolder::load");
  CheckpointLoader(impl_->names, impl_->ranks).load(state, step);
  impl_->saves.note_load();
}

void CheckpointFolder::clear() {
  const auto call = impl_->call("CheckpointFolder::clear");
  impl_->saves.abandon();
  impl_->ranks.gather("");  // nobody writes any more
  impl_->ranks.decided_by_first("CheckpointFolder::clear", [this] {
    impl_->names.remove_all();
    return std::string();
  });
}

}  // namespace catena::training
