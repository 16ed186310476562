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
  // Another stream of numbers for each replica of the model.
  explicit UnitNumbers(int replica) : replica_(replica) {}

  // Of the first replica.
  uint64_t seed() const { return seed_; }
  void set_seed(uint64_t seed) { seed_ = seed; }
  // The number of the next step.
  int64_t steps() const { return *steps_; }
  void set_steps(int64_t n) { *steps_ = n; }
  // The numbers of the next step. While a graph is captured on the device, those of the launches:
  // the first launch is that step, and each counts as one.
  void begin_step(Device device);
  // The step has succeeded: counts it, unless launches do.
  void end_step();
  // Where the numbers of a unit begin.
  RandomBits of(int unit, int micro_batch) const;

 private:
  int replica_;
  uint64_t seed_ = 0;
  std::shared_ptr<int64_t> steps_ = std::make_shared<int64_t>(0);
  uint64_t of_step_ = 0;
  std::shared_ptr<Array> base_;  // of the captured step: its seed, and zero
};

}  // namespace catena::parallel::pipeline
