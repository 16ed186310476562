// ResidentIterator: batches of a data set that lies on the device.
#include <utility>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/datasets/prefetch.h"

namespace catena::datasets {

ResidentIterator::ResidentIterator(const DatasetPtr& dataset, SerialIterator order, Device device,
                                   RankOf who)
    : BatchIterator(dataset, order, device),
      columns_(dataset->all()),
      order_(std::move(order)),
      who_(who) {
  scatter(0, who);  // checks the ranks
  for (Array& column : columns_) column = column.to(device);
}

Array ResidentIterator::order_of(int64_t epoch) const {
  if (!order_.shuffles()) return arange(0, size(), 1, {Dtype::kInt64, device()});
  return epoch_order(order_.state().seed, epoch, size(), device());
}

std::optional<Batch> ResidentIterator::next() {
  const SerialIterator::Stretch global = order_.ahead();
  if (global.count == 0) return {};
  const Share share = scatter(global.count, who_);
  const Slice slice(global.begin + share.begin, global.begin + share.end);
  Batch batch;
  batch.global_count = global.count;
  batch.weight = share.weight;
  if (order_.shuffles() && positions_epoch_ != global.epoch) {
    positions_ = order_of(global.epoch);
    positions_epoch_ = global.epoch;
  }
  for (const Array& column : columns_) {
    // Positions are right by construction: kWrap spares the check, which would wait for the GPU.
    batch.arrays.push_back(order_.shuffles() ? take(column, positions_(slice), 0, OutOfRange::kWrap)
                                             : column(slice));
  }
  skip();
  batch.place = {order_.state(), order_.batch()};
  return batch;
}

void ResidentIterator::skip() {
  order_.skip();
  handed_out(order_.state(), order_.is_new_epoch());
}

void ResidentIterator::set_state(const IteratorState& state) {
  order_.set_state(state);
  positions_epoch_ = -1;
  handed_out(order_.state(), order_.is_new_epoch());
}

}  // namespace catena::datasets
