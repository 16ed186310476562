#include "training/checkpoint_loader.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "catena/core/log.h"
#include "comm/agreement.h"

namespace catena::training {

using serializers::Checkpoint;
using serializers::DamageError;
using serializers::SliceReader;

namespace {

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

}  // namespace

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

}  // namespace catena::training
