#include "catena/training/checkpoint_folder.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "catena/core/log.h"
#include "comm/agreement.h"
#include "training/checkpoint_parts.h"
#include "training/checkpoint_save.h"
#include "training/folder_names.h"
#include "training/rank_talk.h"

namespace catena::training {
namespace {

// Loads a checkpoint on all ranks: which one, whether it is whole and fits, and only then what is
// in it.
class CheckpointLoader {
 public:
  CheckpointLoader(const FolderNames& names, const RankTalk& ranks)
      : names_(names), ranks_(ranks) {}

  // CheckpointFolder::load. Collective.
  int64_t load(const serializers::Checkpoint& state) const;
  void load(const serializers::Checkpoint& state, int64_t step) const;

 private:
  // By folders: what is wrong with their bytes.
  using Damaged = std::map<std::string, std::string>;
  std::string newest(const Damaged& damaged, std::vector<std::string>& skipped) const;
  // A checkpoint that is about to be loaded.
  struct Opened {
    std::unique_ptr<serializers::SliceReader> reader;
    std::unique_ptr<PartsToLoad> parts;
  };
  Opened open(const serializers::Checkpoint& state, const std::string& folder,
              const char* hint) const;
  std::string damage_of(const serializers::SliceReader& reader) const;
  void restore(const Opened& opened) const;

  const FolderNames& names_;
  const RankTalk& ranks_;
};

using serializers::Checkpoint;
using serializers::DamageError;
using serializers::SliceReader;

int64_t step_of_folder(const std::string& folder) {
  long long step = 0;
  std::sscanf(folder.c_str() + folder.rfind('-') + 1, "%lld", &step);
  return step;
}

std::unique_ptr<SliceReader> open_folder(const std::string& folder) {
  auto reader = std::make_unique<SliceReader>(folder);
  CATENA_CHECK(serializers::DamageError, reader->index().step == step_of_folder(folder), "'",
               folder, "' has the checkpoint of step ", reader->index().step,
               ": it was renamed or copied; give it the name '", name_of_step(reader->index().step),
               "'");
  return reader;
}

// What to compare: which checkpoint the ranks want.
std::string to_load(const std::string& which) {
  return comm::Agreement().add("the checkpoint to load", which).text();
}

// The newest folder that is whole, as far as its index and the sizes of its files tell, and why
// newer ones are not. `damaged`: the bytes of these were read, and what is wrong with them. What
// cannot be read may be whole: an error, so that no older one is taken for the newest.
std::string CheckpointLoader::newest(const Damaged& damaged,
                                     std::vector<std::string>& skipped) const {
  skipped.clear();
  for (const std::string& unfinished : names_.all_unfinished())
    skipped.push_back("'" + unfinished + "': its save did not end");
  std::vector<int64_t> steps = names_.steps();
  std::reverse(steps.begin(), steps.end());
  for (const int64_t step : steps) {
    const std::string folder = names_.path_of(step);
    const auto known = damaged.find(folder);
    try {
      CATENA_CHECK(serializers::DamageError, known == damaged.end(), known->second);
      return open_folder(folder)->folder();
    } catch (const DamageError& error) {
      skipped.push_back(error.what());
    }
  }
  return "";
}

int64_t CheckpointLoader::load(const Checkpoint& state) const {
  constexpr const char* kWho = "CheckpointFolder::load";
  require_alike(kWho, ranks_.gather(to_load("the newest")));
  Damaged damaged;
  std::vector<std::string> skipped;  // on rank 0
  std::set<std::string> warned;
  for (;;) {
    const std::string found = ranks_.decided_by_first(kWho, [&] {
      const std::string whole = newest(damaged, skipped);
      std::string list;
      for (const std::string& each : skipped) list += "\n  " + each;
      CATENA_CHECK(IoError, !whole.empty(), "there is no complete checkpoint in '", names_.path(),
                   "'", list.empty() ? "; start without one, or give another folder" : ":" + list);
      return whole;
    });
    for (const std::string& each : skipped)
      if (warned.insert(each).second)
        logging::warning("CheckpointFolder: leaves out a checkpoint: ", each);
    const Opened opened = open(state, found, "");
    const std::string damage = damage_of(*opened.reader);
    if (!damage.empty()) {
      damaged[found] = damage;
      continue;
    }
    restore(opened);
    return step_of_folder(found);
  }
}

void CheckpointLoader::load(const Checkpoint& state, int64_t step) const {
  require_alike("CheckpointFolder::load", ranks_.gather(to_load(message("that of step ", step))));
  CATENA_CHECK(ValueError, step >= 0, "CheckpointFolder::load: expected a step of at least 0, got ",
               step);
  constexpr const char* kHint =
      "; nothing was loaded; load(state) takes the newest checkpoint that is whole";
  const Opened opened = open(state, names_.path_of(step), kHint);
  const std::string damage = damage_of(*opened.reader);
  CATENA_CHECK(IoError, damage.empty(), "CheckpointFolder::load: ", damage, kHint);
  restore(opened);
}

// Reads the index. Throws, on all ranks, unless the checkpoint fits what is to be loaded; `hint`
// ends the error of a folder that is not whole.
CheckpointLoader::Opened CheckpointLoader::open(const Checkpoint& state, const std::string& folder,
                                                const char* hint) const {
  Opened opened;
  const RankError error = error_of_call([&] { opened.reader = open_folder(folder); }) += hint;
  std::vector<RankError> errors = ranks_.gather_errors(error);
  if (errors.front().empty())
    for (RankError& each : errors) each += "; rank 0 reads it: " + advice_on_sharing(names_.path());
  ranks_.throw_first("CheckpointFolder::load", errors);
  ranks_.throw_if_any("CheckpointFolder::load",
                      error_of_call([&] { opened.parts = std::make_unique<PartsToLoad>(state); }));
  std::vector<std::string> names;
  std::string own_names;
  for (const std::string& name : opened.parts->names()) own_names += name + "\n";
  for (const std::string& all : ranks_.gather(own_names))
    for (size_t at = 0, end; (end = all.find('\n', at)) != std::string::npos; at = end + 1)
      names.push_back(all.substr(at, end - at));
  const serializers::SliceIndex& index = opened.reader->index();
  const std::string unknown = unknown_in(index, entries_of(state), names);
  std::string own_problems;
  ranks_.throw_if_any("CheckpointFolder::load",
                      error_of_call([&] { own_problems = opened.parts->problems(index); }));
  std::vector<RankError> problems;
  for (const std::string& each : ranks_.gather(own_problems))
    problems.push_back(
        each.empty() && unknown.empty()
            ? RankError()
            : RankError{
                  RankError::Kind::kIo,
                  message("'", folder, "' is not a checkpoint of this program:", each, unknown)});
  ranks_.throw_first("CheckpointFolder::load", problems);
  return opened;
}

// What is wrong with the bytes of a checkpoint, which the ranks read in shares, before anything of
// it is loaded; "" if they are what was written. The same on all ranks. Throws, on all, where a
// rank cannot read them.
std::string CheckpointLoader::damage_of(const SliceReader& reader) const {
  std::string damage;
  RankError error = error_of_call([&] {
    try {
      reader.check_pieces(ranks_.rank(), ranks_.size());
    } catch (const DamageError& found) {
      damage = found.what();
    }
  });
  error +=
      message("; '", reader.folder(), "' may be whole, but cannot be read; nothing was loaded");
  ranks_.throw_if_any("CheckpointFolder::load", error);
  const std::vector<std::string> all = ranks_.gather(damage);
  const int first = first_with_error(all);
  return first < 0 ? "" : ranks_.named(first, all[size_t(first)]);
}

// What fails from here on, on any rank, leaves a state that is neither the old nor the new one.
void CheckpointLoader::restore(const Opened& opened) const {
  RankError error = error_of_call([&] { opened.parts->load(*opened.reader); });
  error += message("; a part of '", opened.reader->folder(),
                   "' was loaded: load another checkpoint before the state is used");
  ranks_.throw_if_any("CheckpointFolder::load", error);
}

}  // namespace

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
