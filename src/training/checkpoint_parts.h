// Entries of a checkpoint as slices of global tensors, and functions that read them back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "catena/serializers/checkpoint.h"
#include "serializers/slice_reader.h"

namespace catena::training {

// Everything that this process has of the entries, by global names: parameters and states of
// tensor-parallel layers as slices of the whole layer's. Of entries that are not models,
// optimizers and the like only `is_first` process's.
serializers::TensorParts parts_to_save(const serializers::Checkpoint& state, bool is_first);
std::vector<serializers::TensorSlice> slices_of(const serializers::TensorParts& parts);
// Into how many slices, each of a rank, its tensors are cut, the most of them; 1: into none.
struct SliceCounts {
  int64_t parameters = 1;  // of which each slice is on all ranks of an optimizer's communicator
  int64_t persistents = 1;
  int64_t most() const { return std::max(parameters, persistents); }
};
SliceCounts slices_over(const serializers::Checkpoint& state);
std::vector<std::string> entries_of(const serializers::Checkpoint& state);

// What this process wants of a checkpoint that was written so.
class PartsToLoad {
 public:
  explicit PartsToLoad(const serializers::Checkpoint& state);

  // Names of the tensors that spread objects have here.
  std::vector<std::string> names() const;
  // A line for each entry or tensor that is missing there, or has another shape or dtype, and for
  // each entry that does not take its values.
  std::string problems(const serializers::SliceIndex& index) const;
  // Reads and restores the entries, in the order in which they were added.
  void load(const serializers::SliceReader& reader) const;

 private:
  struct Part {
    const serializers::Checkpoint::Entry* entry;
    serializers::TensorParts parts;
  };
  std::vector<Part> entries_;
};

// A line for each entry and each tensor of a model or an optimizer that is not among these names.
std::string unknown_in(const serializers::SliceIndex& index,
                       const std::vector<std::string>& entries,
                       const std::vector<std::string>& names);

}  // namespace catena::training
