// Iterators over ranks: the batches of one rank for all, and the same order on all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/datasets/prefetch.h"

namespace catena::training {

// The same batches on all ranks, from the iterator of one: for model parallelism and pipelines,
// where several ranks work on one batch. The master's batches are sent as they are, on comm's
// device.
class MultiNodeIterator final : public datasets::BatchIterator {
 public:
  // `batches` is the master's and outlives this; the others give null. Collective. ValueError on
  // all ranks unless the master alone has one; DeviceError when the master's batches are not on its
  // communicator's device. Null communicator: the iterator itself.
  MultiNodeIterator(datasets::BatchIterator* batches, const CommunicatorPtr& comm, int master = 0);

  // Collective. An exception of the master's iterator becomes a ValueError with its text on the
  // other ranks.
  std::optional<datasets::Batch> next() override;
  // On all ranks.
  void set_state(const datasets::IteratorState& state) override;

 private:
  struct Form;
  MultiNodeIterator(datasets::BatchIterator* batches, const CommunicatorPtr& comm, int master,
                    const Form& form);
  bool is_master() const { return comm_ == nullptr || comm_->rank() == master_; }
  std::vector<int64_t> next_header(std::optional<datasets::Batch>& batch);
  std::vector<int64_t> shared_header(std::optional<datasets::Batch>& batch);

  datasets::BatchIterator* batches_;
  CommunicatorPtr comm_;
  int master_;
};
// ChainerMN's spelling.
inline MultiNodeIterator create_multi_node_iterator(datasets::BatchIterator* batches,
                                                    const CommunicatorPtr& comm, int master = 0) {
  return MultiNodeIterator(batches, comm, master);
}

// The iterator with the root's seed and place in the data, so that all ranks see one order, each
// from its own data set. Collective: ValueError on all ranks, naming them, where the order or the
// batch size differ. Null communicator: as it is.
datasets::PositionIterator create_synchronized_iterator(datasets::PositionIterator iterator,
                                                        const CommunicatorPtr& comm, int root = 0);
// The same for an iterator of batches, in place; of its order only the size is compared.
void synchronize_iterator(datasets::BatchIterator& batches, const CommunicatorPtr& comm,
                          int root = 0);

}  // namespace catena::training
