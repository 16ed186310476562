// Batches of ranks that go through their own parts of a data set.
#pragma once

#include <memory>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/datasets/prefetch.h"

namespace catena::training {

// How PartIterator goes through a part.
struct PartOptions {
  bool shuffle = true;  // another order in each epoch, by the seed
  uint64_t seed = 0;
  bool repeat = true;
  datasets::PrefetchOptions prefetch = {};
};

// Each rank reads batches of `batch` samples from its own part, which scatter_dataset made, and all
// of them together are one global batch: counts, weights and places are those of all ranks, so
// that training::make_step and Trainer take it like an iterator with RankOf. An epoch is as long as
// the longest part needs; ranks whose part has ended before get empty batches. The parts may be of
// any sizes, and empty on some ranks.
//
// Samples stay on their rank, unlike with RankOf: what a rank sees in an epoch is its part.
class PartIterator final : public datasets::BatchIterator {
 public:
  // Collective. ValueError on all ranks for batches and options that differ, batches below 1, and
  // where no rank has samples. Null communicator: one rank.
  PartIterator(datasets::DatasetPtr part, int64_t batch, Device device, const CommunicatorPtr& comm,
               const PartOptions& options = {});
  std::optional<datasets::Batch> next() override;
  // ValueError unless the state is one between two batches of this iterator.
  void set_state(const datasets::IteratorState& state) override;

 private:
  struct Plan;
  PartIterator(datasets::DatasetPtr part, Device device, const Plan& plan,
               const PartOptions& options);
  std::optional<datasets::Batch> own_batch();

  datasets::DatasetPtr part_;
  std::unique_ptr<datasets::PrefetchIterator> own_;  // null: no samples
  int64_t batch_;                                    // of this rank
  std::vector<int64_t> begins_;                      // of the batches of an epoch, and its end
  size_t next_ = 0;                                  // batch of the epoch
};

}  // namespace catena::training
