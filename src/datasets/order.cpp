#include "catena/datasets/order.h"

#include <algorithm>
#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"

namespace catena::datasets {
namespace {

// The generator of an epoch: `blocks` blocks of random numbers an epoch, which no two share.
RandomState generator(uint64_t seed, int64_t epoch, int64_t blocks) {
  RandomState random(seed);
  random.set_state({seed, static_cast<uint64_t>(epoch) * static_cast<uint64_t>(blocks)});
  return random;
}

int64_t drawn_samples(const Array& weights, int64_t samples) {
  CATENA_CHECK(ShapeError, weights.ndim() == 1 && weights.length() > 0,
               "WeightedOrder: expected the weights as a vector, got shape ", weights.shape());
  CATENA_CHECK(ValueError, samples >= 0, "WeightedOrder: ", samples,
               " samples in an epoch, expected at least 1, or 0 for as many as there are weights");
  return samples > 0 ? samples : weights.length();
}

}  // namespace

Order::Order(int64_t dataset_size, int64_t size) : dataset_size_(dataset_size), size_(size) {
  CATENA_CHECK(ValueError, dataset_size > 0, "iterator: the data set has ", dataset_size,
               " samples, expected at least 1");
  CATENA_CHECK(ValueError, size > 0, "iterator: an epoch has ", size,
               " samples, expected at least 1");
}

Array Order::of_epoch(uint64_t seed, int64_t epoch, Device device) const {
  const Array found = positions(seed, epoch, device);
  CATENA_CHECK(ValueError,
               found.defined() && found.dtype() == Dtype::kInt64 && found.shape() == Shape{size_},
               "order of epoch ", epoch, ": expected int64 of shape (", size_, ",), got ",
               found.defined() ? message(found.dtype(), " of shape ", found.shape())
                               : std::string("an undefined array"));
  if (!is_trusted()) {
    const auto all = found.to_vector<int64_t>();
    const auto bad = std::find_if(all.begin(), all.end(),
                                  [&](int64_t p) { return p < 0 || p >= dataset_size_; });
    CATENA_CHECK(ValueError, bad == all.end(), "order of epoch ", epoch, ": position ",
                 bad == all.end() ? 0 : *bad, " is outside the data set of ", dataset_size_,
                 " samples");
  }
  return found.to(device);
}

Array SequentialOrder::positions(uint64_t /*seed*/, int64_t /*epoch*/, Device device) const {
  return arange(0, size(), 1, {Dtype::kInt64, device});
}

// A permutation takes one Philox block a sample.
Array ShuffledOrder::positions(uint64_t seed, int64_t epoch, Device device) const {
  return generator(seed, epoch, size()).permutation(size(), device);
}

WeightedOrder::WeightedOrder(const Array& weights, int64_t samples)
    : Order(weights.length(), drawn_samples(weights, samples)) {
  double sum = 0;
  for (const double weight : weights.to_cpu().to_vector<double>()) {
    CATENA_CHECK(ValueError, std::isfinite(weight) && weight >= 0, "WeightedOrder: the weight of ",
                 "sample ", sums_.size(), " is ", weight, ", expected a number of at least 0");
    sum += weight;
    sums_.push_back(sum);
  }
  CATENA_CHECK(ValueError, sum > 0 && std::isfinite(sum), "WeightedOrder: the weights add up to ",
               sum, "; expected a finite number above 0");
}

// Drawn on the host, so that the order is the same on every device. A block makes at least one
// number of 64 bits.
Array WeightedOrder::positions(uint64_t seed, int64_t epoch, Device device) const {
  RandomState random = generator(seed, epoch, size());
  const auto draws = random.uniform({size()}, 0, 1, {dtype::float64, cpu(0)}).to_vector<double>();
  std::vector<int64_t> drawn;
  for (const double draw : draws) {
    const auto at = std::upper_bound(sums_.begin(), sums_.end(), draw * sums_.back());
    const auto last = std::lower_bound(sums_.begin(), sums_.end(), sums_.back());
    drawn.push_back(std::min(at, last) - sums_.begin());  // never one of weight 0 at the end
  }
  return array(drawn, {size()}, device);
}

Array epoch_order(uint64_t seed, int64_t epoch, int64_t size, Device device) {
  return ShuffledOrder(size).of_epoch(seed, epoch, device);
}

}  // namespace catena::datasets
