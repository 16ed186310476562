// Persistent arrays of slices of a batch, as if each slice were a rank.
#pragma once

#include <memory>
#include <vector>

#include "catena/autograd/function_set.h"
#include "catena/comm/communicator.h"

namespace catena::parallel {

// Each slice has its own copy of every persistent array: running means of batch normalization, for
// instance, are those of the slice's batches, whatever other slices the rank runs. So the arrays do
// not depend on the number of ranks. A rank keeps the copies of its slices beside the model, whose
// arrays are those of the slice that runs, or of the last one. Whoever writes the model's arrays
// between two steps (a checkpoint, a broadcast) writes those of all slices.
class SlicePersistents : public std::enable_shared_from_this<SlicePersistents> {
 public:
  // `slices` of all ranks.
  SlicePersistents(Communicator& comm, int slices)
      : comm_(comm), local_(slices / comm.size()), slices_(slices) {}

  void after_setup(const NamedPersistents& persistents);
  void begin_step();
  void begin_slice(int local);
  void end_slice(int local);

  bool holds(const Persistent& persistent) const;
  // Gives all slices of all ranks the mean over the slices, which count by their samples, summed in
  // a tree. Collective. The arrays are of those that holds().
  void average(const std::vector<Persistent>& persistents);

  // Those of the communicator whose setup has seen the array, or null.
  static std::shared_ptr<SlicePersistents> of(const Persistent& persistent,
                                              const Communicator& comm);

 private:
  struct Entry {
    Persistent persistent;
    Arrays own;                    // of this rank's slices, where it has several
    std::vector<int64_t> samples;  // that went into them since the last average
    uint64_t writes = 0;           // of the model's array, up to the end of the last step
    uint64_t writes_before = 0;    // up to the start of the slice
    bool moves = false;            // slices have written it
  };
  void follow_writes();
  Entry& entry_of(const Persistent& persistent);
  std::vector<std::vector<int64_t>> gather_samples(const std::vector<Entry*>& averaged) const;
  Array local_sum(const Entry& entry, const std::vector<int64_t>& samples) const;

  Communicator& comm_;
  int local_, slices_;
  std::vector<Entry> entries_;
};

}  // namespace catena::parallel
