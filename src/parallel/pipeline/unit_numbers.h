// The random numbers of a step: those of a unit of the model and a micro-batch depend on the seed,
// the step and these two alone, so that every cut and every schedule draws the same.
#pragma once

#include <cstdint>
#include <memory>

#include "catena/array/array.h"
#include "catena/kernels/random.h"

namespace catena::parallel::pipeline {

class UnitNumbers {
 public:
  static constexpr int kMostUnits = 4095, kMostMicroBatches = 4096;  // the loss is a unit, too
  explicit UnitNumbers(uint64_t seed) : seed_(seed) {}

  // Another stream of numbers for each replica of the model.
  void set_seed(uint64_t seed, int replica);
  // The numbers of step `*next`. While a graph is captured on the device, those of the launches:
  // the first launch is step `*next`, and each adds one to it.
  void begin_step(const std::shared_ptr<int64_t>& next, Device device);
  // The step has succeeded: adds one to `*next`, unless launches do.
  void end_step(const std::shared_ptr<int64_t>& next);
  // Where the numbers of a unit begin.
  RandomBits of(int unit, int micro_batch) const;

 private:
  uint64_t seed_;
  uint64_t of_step_ = 0;
  std::shared_ptr<Array> base_;  // of the captured step: its seed, and zero
};

}  // namespace catena::parallel::pipeline
