// Random arrays from Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011): counter-based, so that raw bits, integers, uniform, bernoulli and permutation are
// identical on every device and for every launch shape; normal agrees within 4 ulp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "catena/array/array.h"

namespace catena {

// The numbers one call may consume: blocks of four 32-bit words numbered from `offset` under
// `seed`. In a captured graph `base` is a 0-d uint64 device value that kernels add to `offset`: it
// is set before every launch, so that replays go on in the stream of numbers.
struct RandomBits {
  uint64_t seed = 0;
  uint64_t offset = 0;
  const Array* base = nullptr;
};

// A stream of random numbers; default ones exist per device. Not thread-safe.
class RandomState {
 public:
  explicit RandomState(uint64_t seed);
  void seed(uint64_t seed);

  // [low, high). float16, bfloat16, float32 (24 bits) or float64 (53 bits).
  Array uniform(const Shape& shape, double low = 0, double high = 1, Dtype dtype = Dtype::kFloat64,
                std::optional<Device> device = {});
  // Box-Muller on pairs of the same bits.
  Array normal(const Shape& shape, double mean = 0, double deviation = 1,
               Dtype dtype = Dtype::kFloat64, std::optional<Device> device = {});
  // Integers of [low, high), unbiased; ValueError when the range is empty or does not fit dtype.
  Array integers(const Shape& shape, int64_t low, int64_t high, Dtype dtype = Dtype::kInt64,
                 std::optional<Device> device = {});
  // true with probability p.
  Array bernoulli(const Shape& shape, double p, std::optional<Device> device = {});
  // 0 .. n-1 in random order, int64.
  Array permutation(int64_t n, std::optional<Device> device = {});

  // Reserves the numbers of `blocks` Philox blocks for work on `device`. While a graph is captured
  // there, the numbers are those of each launch: a replayed step draws what an eager one would.
  RandomBits reserve(uint64_t blocks, Device device = current_device());
  // Everything needed to continue the stream elsewhere (seed, offset).
  struct State {
    uint64_t seed, offset;
  };
  State state() const;
  void set_state(State state);

  // Copies continue independently from the same state. Captured graphs keep the state they use.
  RandomState(const RandomState& other);
  RandomState& operator=(const RandomState& other);

 private:
  struct Shared;  // also held by the graphs that draw from it
  std::shared_ptr<Shared> shared_;
};

namespace random {

// The device's default generator; all start from a seed of the system's entropy, or CATENA_SEED.
RandomState& default_state(Device device);
RandomState& default_state();  // of current_device()
// Seeds the default generators of all devices.
void seed(uint64_t value);

// As the methods of RandomState, from the default generator of current_device().
Array uniform(const Shape& shape, double low = 0, double high = 1, Dtype dtype = Dtype::kFloat64);
Array normal(const Shape& shape, double mean = 0, double deviation = 1,
             Dtype dtype = Dtype::kFloat64);
Array integers(const Shape& shape, int64_t low, int64_t high, Dtype dtype = Dtype::kInt64);
Array bernoulli(const Shape& shape, double p);
Array permutation(int64_t n);

}  // namespace random

}  // namespace catena
