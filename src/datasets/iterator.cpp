#include "catena/datasets/iterator.h"

#include <algorithm>
#include <utility>

#include "catena/array/creation.h"

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

PositionIterator::PositionIterator(OrderPtr order, int64_t batch, const IteratorOptions& options,
                                   uint64_t seed)
    : order_(std::move(order)),
      batch_(batch),
      repeat_(options.repeat.value_or(false)),
      drop_last_(options.drop_last) {
  CATENA_CHECK(ValueError, order_ != nullptr, "iterator: there is no order; give a data set's");
  state_ = {order_->size(), seed, 0, 0};
  CATENA_CHECK(ValueError, batch > 0, "iterator: the batch size is ", batch,
               ", expected at least 1");
  CATENA_CHECK(ValueError, !drop_last_ || batch <= size(), "iterator: with drop_last no batch of ",
               batch, " samples is left of ", size(), "; use smaller batches");
}

bool PositionIterator::ends_epoch(int64_t position) const {
  const int64_t left = size() - position;
  return left == 0 || (drop_last_ && left < batch_);
}

PositionIterator::Stretch PositionIterator::ahead() const {
  // A run with smaller batches may have left samples that are dropped now.
  const bool dropped = ends_epoch(state_.position);
  const int64_t epoch = state_.epoch + (dropped ? 1 : 0), begin = dropped ? 0 : state_.position;
  if (!repeat_ && epoch > 0) return {epoch, 0, 0};
  return {epoch, begin, std::min(batch_, size() - begin)};
}

void PositionIterator::skip() {
  const Stretch batch = ahead();
  state_.epoch = batch.epoch;
  state_.position = batch.begin + batch.count;
  if (batch.count == 0) return;
  is_new_epoch_ = ends_epoch(state_.position);
  if (!is_new_epoch_) return;
  state_.position = 0;
  ++state_.epoch;
}

std::span<const int64_t> PositionIterator::next() {
  const Stretch batch = ahead();
  const bool has_them =
      order_->is_sequential() ? !positions_.empty() : positions_epoch_ == batch.epoch;
  if (batch.count > 0 && !has_them) {
    positions_ = order_->of_epoch(state_.seed, batch.epoch).to_vector<int64_t>();
    positions_epoch_ = batch.epoch;
  }
  skip();
  return {positions_.data() + batch.begin, static_cast<size_t>(batch.count)};
}

void PositionIterator::set_state(const IteratorState& state) {
  CATENA_CHECK(ValueError, state.size == size(), "iterator: the saved state is of epochs of ",
               state.size, " samples, those of this one have ", size(),
               "; resume with the data the run began with");
  CATENA_CHECK(ValueError, state.epoch >= 0 && state.position >= 0 && state.position < size(),
               "iterator: the saved state (epoch ", state.epoch, ", position ", state.position,
               ") is out of range for ", size(), " samples");
  state_ = state;
  is_new_epoch_ = state.position == 0 && state.epoch > 0;
  positions_epoch_ = -1;
}

}  // namespace catena::datasets
