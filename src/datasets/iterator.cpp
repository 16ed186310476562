#include "catena/datasets/iterator.h"

#include <algorithm>
#include <numeric>

#include "catena/array/creation.h"
#include "catena/array/random.h"

namespace catena::datasets {

Array IteratorState::to_array() const {
  return array<int64_t>({size, static_cast<int64_t>(seed), epoch, position}, cpu(0));
}

IteratorState IteratorState::from_array(const Array& a) {
  CATENA_CHECK(ValueError, a.dtype() == Dtype::kInt64 && a.shape() == Shape{4},
               "IteratorState::from_array: expected int64 of shape (4,), got ", a.dtype(),
               " of shape ", a.shape());
  const std::vector<int64_t> v = a.to_vector<int64_t>();
  return {v[0], static_cast<uint64_t>(v[1]), v[2], v[3]};
}

SerialIterator::SerialIterator(int64_t size, int64_t batch, bool repeat, bool drop_last,
                               bool shuffle, uint64_t seed)
    : state_{size, seed, 0, 0},
      batch_(batch),
      repeat_(repeat),
      drop_last_(drop_last),
      shuffle_(shuffle) {
  CATENA_CHECK(ValueError, size > 0, "iterator: the data set has ", size,
               " samples, expected at least 1");
  CATENA_CHECK(ValueError, batch > 0, "iterator: the batch size is ", batch,
               ", expected at least 1");
  CATENA_CHECK(ValueError, !drop_last || batch <= size, "iterator: with drop_last no batch of ",
               batch, " samples is left of a data set of ", size, "; use smaller batches");
}

bool SerialIterator::ends_epoch(int64_t position) const {
  const int64_t left = size() - position;
  return left == 0 || (drop_last_ && left < batch_);
}

SerialIterator::Stretch SerialIterator::ahead() const {
  // A run with smaller batches may have left samples that are dropped now.
  const bool dropped = ends_epoch(state_.position);
  const int64_t epoch = state_.epoch + (dropped ? 1 : 0), begin = dropped ? 0 : state_.position;
  if (!repeat_ && epoch > 0) return {epoch, 0, 0};
  return {epoch, begin, std::min(batch_, size() - begin)};
}

void SerialIterator::skip() {
  const Stretch batch = ahead();
  state_.epoch = batch.epoch;
  state_.position = batch.begin + batch.count;
  if (batch.count == 0) return;
  is_new_epoch_ = ends_epoch(state_.position);
  if (!is_new_epoch_) return;
  state_.position = 0;
  ++state_.epoch;
}

std::span<const int64_t> SerialIterator::next() {
  const Stretch batch = ahead();
  if (batch.count > 0 && order_.empty()) {
    order_.resize(static_cast<size_t>(size()));
    std::iota(order_.begin(), order_.end(), 0);
  }
  if (batch.count > 0 && shuffle_ && order_epoch_ != batch.epoch) {
    const Array order = epoch_order(state_.seed, batch.epoch, size());
    std::copy_n(order.data<int64_t>(), size(), order_.begin());
    order_epoch_ = batch.epoch;
  }
  skip();
  return {order_.data() + batch.begin, static_cast<size_t>(batch.count)};
}

void SerialIterator::set_state(const IteratorState& state) {
  CATENA_CHECK(ValueError, state.size == size(), "iterator: the saved state is of a data set of ",
               state.size, " samples, this one has ", size(),
               "; resume with the data the run began with");
  CATENA_CHECK(ValueError, state.epoch >= 0 && state.position >= 0 && state.position < size(),
               "iterator: the saved state (epoch ", state.epoch, ", position ", state.position,
               ") is out of range for ", size(), " samples");
  state_ = state;
  is_new_epoch_ = state.position == 0 && state.epoch > 0;
  order_epoch_ = -1;
}

Array epoch_order(uint64_t seed, int64_t epoch, int64_t size, Device device) {
  // A permutation takes one Philox block a sample, so epochs never share random numbers.
  RandomState random(seed);
  random.set_state({seed, static_cast<uint64_t>(epoch) * static_cast<uint64_t>(size)});
  return random.permutation(size, device);
}

}  // namespace catena::datasets
