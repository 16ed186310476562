// ResidentIterator: batches of a data set that lies on the device.
#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/datasets/prefetch.h"

namespace catena::datasets {

ResidentIterator::ResidentIterator(const DatasetPtr& dataset, SerialIterator order, Device device,
                                   RankOf who)
    : BatchIterator(dataset, order, device),
      columns_(dataset->all()),
      shuffles_(order.shuffles()),
      repeat_(order.repeats()),
      seed_(order.state().seed),
      batch_(order.batch()),
      who_(who) {
  scatter(0, who);  // checks the ranks
  for (Array& column : columns_) column = column.to(device);
}

Array ResidentIterator::order_of(int64_t epoch) const {
  if (!shuffles_) return arange(0, size(), 1, {Dtype::kInt64, device()});
  return epoch_order(seed_, epoch, size(), device());
}

std::optional<Batch> ResidentIterator::next() {
  IteratorState now = state();
  if (!repeat_ && now.epoch > 0) return {};
  const int64_t count = std::min(batch_, size() - now.position);
  const Share share = scatter(count, who_);
  const Slice slice(now.position + share.begin, now.position + share.end);
  Batch batch;
  batch.global_count = count;
  batch.weight = share.weight;
  if (shuffles_ && order_epoch_ != now.epoch) {
    order_ = order_of(now.epoch);
    order_epoch_ = now.epoch;
  }
  for (const Array& column : columns_) {
    // Positions are right by construction: kWrap spares the check, which would wait for the GPU.
    batch.arrays.push_back(shuffles_ ? take(column, order_(slice), 0, OutOfRange::kWrap)
                                     : column(slice));
  }
  now.position += count;
  const bool is_new_epoch = now.position == size();
  if (is_new_epoch) {
    now.position = 0;
    ++now.epoch;
  }
  handed_out(now, is_new_epoch);
  return batch;
}

void ResidentIterator::set_state(const IteratorState& state) {
  SerialIterator check(size(), batch_);
  check.set_state(state);
  seed_ = state.seed;
  order_epoch_ = -1;
  handed_out(check.state(), check.is_new_epoch());
}

}  // namespace catena::datasets
