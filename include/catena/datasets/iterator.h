// The order in which samples are visited: positions of one batch after the other, epoch by epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "catena/datasets/order.h"

namespace catena::datasets {

// The position of an iterator; restoring it continues bit for bit.
struct IteratorState {
  int64_t size = 0;  // samples of an epoch
  uint64_t seed = 0;
  int64_t epoch = 0;     // completed ones
  int64_t position = 0;  // samples of the current epoch already handed out

  // As int64 (4), for checkpoints.
  Array to_array() const;
  // Throws ValueError when the array is not such a one.
  static IteratorState from_array(const Array& a);
};

// Which batch of an order it is, equal on all ranks that share the batch.
struct BatchPlace {
  IteratorState after;  // of the order, with the batch handed out
  int64_t batch = 0;    // samples of a full batch over all ranks; 0: not known
};

// How an iterator goes through the epochs.
struct IteratorOptions {
  // Whether epochs follow each other without end; unless given, as the iterator does by default
  // (PositionIterator: not).
  std::optional<bool> repeat = {};
  // Whether an epoch ends before a last batch that is not full. Its samples are left out, in a
  // shuffled order other ones in each epoch. Batches of one sample have no variance, which batch
  // normalization needs.
  bool drop_last = false;
};

// Cuts the epochs of an order into batches. The last batch of an epoch is shorter when the size
// does not divide, unless it is dropped. With `repeat` epochs follow each other without end, else
// next() is empty after one. ValueError unless the batch size is positive, and where no batch is
// left.
//
// A copy goes on from the same place by itself. The classes below only choose the order: they may
// be passed where a PositionIterator is expected. Derive from Order, not from this.
class PositionIterator {
 public:
  PositionIterator(OrderPtr order, int64_t batch, const IteratorOptions& options = {},
                   uint64_t seed = 0);

  // The positions of the next batch, valid until the following call.
  std::span<const int64_t> next();

  // A batch without its positions: where it begins in its epoch, and its samples.
  struct Stretch {
    int64_t epoch = 0, begin = 0, count = 0;  // a count of 0: there is none
  };
  // The next batch, which stays the next one.
  Stretch ahead() const;
  // Goes past the next batch.
  void skip();

  // Samples in an epoch and in a batch, batches in an epoch (a short last one included), and
  // completed epochs.
  int64_t size() const { return state_.size; }
  int64_t batch() const { return batch_; }
  int64_t batches_per_epoch() const { return (drop_last_ ? size() : size() + batch_ - 1) / batch_; }
  int64_t epoch() const { return state_.epoch; }
  // Whether the batch handed out last completed an epoch.
  bool is_new_epoch() const { return is_new_epoch_; }
  // Epochs with fraction.
  double epoch_detail() const { return double(epoch()) + double(position()) / double(size()); }
  int64_t position() const { return state_.position; }
  bool finished() const { return !repeat_ && state_.epoch > 0; }
  const Order& order() const { return *order_; }
  bool repeats() const { return repeat_; }
  bool drops_last() const { return drop_last_; }

  // The position after the batch that was returned last.
  const IteratorState& state() const { return state_; }
  // Throws ValueError when the state is of epochs of another size, or out of range. The batch size
  // may differ: the state counts samples.
  void set_state(const IteratorState& state);

 private:
  // Whether no further batch of the epoch follows at a position.
  bool ends_epoch(int64_t position) const;

  OrderPtr order_;
  IteratorState state_;
  int64_t batch_;
  bool repeat_, drop_last_;
  bool is_new_epoch_ = false;
  std::vector<int64_t> positions_;
  int64_t positions_epoch_ = -1;  // of which positions_ are
};

// Positions 0 .. size - 1 in order; by default once.
class SerialIterator final : public PositionIterator {
 public:
  SerialIterator(int64_t size, int64_t batch, bool repeat = false)
      : SerialIterator(size, batch, IteratorOptions{.repeat = repeat}) {}
  SerialIterator(int64_t size, int64_t batch, const IteratorOptions& options)
      : PositionIterator(std::make_shared<SequentialOrder>(size), batch, options) {}
};

// A new order each epoch; by default without end. The order depends on seed, epoch and size alone:
// not on the batch size, the number of ranks or the device.
class ShuffledIterator final : public PositionIterator {
 public:
  ShuffledIterator(int64_t size, int64_t batch, uint64_t seed, bool repeat = true)
      : ShuffledIterator(size, batch, seed, IteratorOptions{.repeat = repeat}) {}
  ShuffledIterator(int64_t size, int64_t batch, uint64_t seed, const IteratorOptions& options)
      : PositionIterator(std::make_shared<ShuffledOrder>(size), batch,
                         {options.repeat.value_or(true), options.drop_last}, seed) {}
};

// Draws samples as often as their weights say; by default without end. See WeightedOrder.
class WeightedIterator final : public PositionIterator {
 public:
  WeightedIterator(const Array& weights, int64_t batch, uint64_t seed, int64_t samples = 0,
                   const IteratorOptions& options = {})
      : PositionIterator(std::make_shared<WeightedOrder>(weights, samples), batch,
                         {options.repeat.value_or(true), options.drop_last}, seed) {}
};

static_assert(sizeof(SerialIterator) == sizeof(PositionIterator) &&
                  sizeof(ShuffledIterator) == sizeof(PositionIterator) &&
                  sizeof(WeightedIterator) == sizeof(PositionIterator),
              "an iterator passed as a PositionIterator would lose what it adds");

}  // namespace catena::datasets
