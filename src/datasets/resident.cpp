// ResidentIterator: batches of a data set that is stored on the device.
#include <utility>

#include "catena/array/indexing.h"
#include "catena/core/trace.h"
#include "catena/datasets/prefetch.h"

namespace catena::datasets {
namespace {

std::vector<Array> arrays_of(const Dataset& dataset) {
  CATENA_CHECK(ValueError, dataset.has_columns(),
               "ResidentIterator: samples of any shape do not lie on a device as a whole; use "
               "PrefetchIterator");
  return dataset.all();
}

}  // namespace

ResidentIterator::ResidentIterator(const DatasetPtr& dataset, PositionIterator order, Device device,
                                   RankOf who)
    : BatchIterator(dataset, order, device),
      columns_(arrays_of(*dataset)),
      order_(std::move(order)),
      who_(who) {
  scatter(0, who);  // checks the ranks
  for (Array& column : columns_) column = column.to(device);
}

Array ResidentIterator::order_of(int64_t epoch) const {
  return order_.order().of_epoch(order_.state().seed, epoch, device());
}

std::optional<Batch> ResidentIterator::next() {
  const tracing::Range range("next batch", tracing::Category::kData);
  const PositionIterator::Stretch global = order_.ahead();
  if (global.count == 0) return {};
  const Share share = scatter(global.count, who_);
  const Slice slice(global.begin + share.begin, global.begin + share.end);
  const bool views = order_.order().is_sequential();
  Batch batch;
  batch.count = share.size();
  batch.global_count = global.count;
  batch.weight = share.weight;
  if (!views && positions_epoch_ != global.epoch) {
    positions_ = order_of(global.epoch);
    positions_epoch_ = global.epoch;
  }
  for (const Array& column : columns_) {
    // The order has checked its positions: kWrap spares the check, which would wait for the GPU.
    batch.arrays.push_back(views ? column(slice)
                                 : take(column, positions_(slice), 0, OutOfRange::kWrap));
  }
  skip();
  batch.place = place();
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
