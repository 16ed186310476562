// In which order an epoch visits the samples of a data set. Derive from Order for your own sampler.
//
//   struct Halves final : datasets::Order {          // one half of the data, then the other
//     explicit Halves(int64_t size) : Order(size, size / 2) {}
//     Array positions(uint64_t, int64_t epoch, Device) const override {
//       return arange(epoch % 2 * size(), (epoch % 2 + 1) * size(), 1, dtype::int64);
//     }
//   };
//   datasets::PositionIterator order(std::make_shared<Halves>(1000), 100, {.repeat = true});
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "catena/array/array.h"

namespace catena::datasets {

// The samples of each epoch. It has no state that changes: an epoch's order follows from the seed
// and the epoch's number alone, so that a run can be resumed anywhere and all ranks have the same.
class Order {
 public:
  virtual ~Order() = default;
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  // Samples in the data set, and in an epoch.
  int64_t dataset_size() const { return dataset_size_; }
  int64_t size() const { return size_; }
  // The positions of an epoch, int64 (size()) on the device. ValueError, with the first that is
  // wrong, when positions() gives others than it should.
  Array of_epoch(uint64_t seed, int64_t epoch, Device device = cpu(0)) const;
  // Whether each epoch is 0 .. dataset_size() - 1: batches may then be views of the data.
  virtual bool is_sequential() const { return false; }

 protected:
  // ValueError unless both are positive.
  Order(int64_t dataset_size, int64_t size);
  explicit Order(int64_t dataset_size) : Order(dataset_size, dataset_size) {}

 private:
  // int64 (size()), each in [0, dataset_size()), on the device or on a CPU. Called by several
  // threads at once.
  virtual Array positions(uint64_t seed, int64_t epoch, Device device) const = 0;
  // Whether the positions are right by construction: the check waits for a GPU.
  virtual bool is_trusted() const { return false; }

  int64_t dataset_size_, size_;
};
// Iterators share their order.
using OrderPtr = std::shared_ptr<const Order>;

// 0 .. size - 1.
class SequentialOrder final : public Order {
 public:
  explicit SequentialOrder(int64_t size) : Order(size) {}
  bool is_sequential() const override { return true; }

 private:
  Array positions(uint64_t seed, int64_t epoch, Device device) const override;
  bool is_trusted() const override { return true; }
};

// A permutation, another one in each epoch.
class ShuffledOrder final : public Order {
 public:
  explicit ShuffledOrder(int64_t size) : Order(size) {}

 private:
  Array positions(uint64_t seed, int64_t epoch, Device device) const override;
  bool is_trusted() const override { return true; }
};

// Samples drawn with replacement, each as often as its weight says: for classes of different size.
class WeightedOrder final : public Order {
 public:
  // A weight for each sample of the data set, in any dtype and on any device; `samples` in an
  // epoch, unless given as many as there are weights. ValueError unless the weights are finite, at
  // least 0 and not all 0.
  explicit WeightedOrder(const Array& weights, int64_t samples = 0);

 private:
  Array positions(uint64_t seed, int64_t epoch, Device device) const override;
  bool is_trusted() const override { return true; }
  std::vector<double> sums_;  // of the weights up to each sample
};

// The order of one epoch of a ShuffledOrder, int64 (size) on the device.
Array epoch_order(uint64_t seed, int64_t epoch, int64_t size, Device device = cpu(0));

}  // namespace catena::datasets
