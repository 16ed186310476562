// Loader of the checkpoints of a CheckpointFolder on all ranks: which one, whether it is whole and
// fits, and only then what is in it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "training/checkpoint_parts.h"
#include "training/folder_names.h"
#include "training/rank_talk.h"

namespace catena::training {

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

}  // namespace catena::training
