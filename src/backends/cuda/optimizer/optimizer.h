// Update rules over one contiguous range of parameters, and what belongs to loss scales: plain
// arguments of the kernels.
#pragma once

#include "backends/cuda/runtime/launch.h"
#include "catena/kernels/detail/optimizer_limits.h"

namespace catena::gpu {

// A number that is the host's, or read from the device when the kernel runs.
struct StepNumber {
  double value;
  const double* float_address;  // one of these, or neither
  const int64_t* integer_address;
};

// OptimizerCall::counter as the kernels see it. Between kernels `arrived` is 0.
struct UpdateCounter {
  double updates;    // done before
  unsigned arrived;  // blocks of the running kernel that have read `updates`
};

struct OptimizerArgs {
  void* parameter;
  const void* gradient;
  float* master;  // of 16-bit parameters
  void* states[kMaxRuleStates];
  int64_t count;
  bool aligned;  // all addresses are multiples of 16
  StepNumber learning_rate, step, gradient_scale;
  UpdateCounter* counter;  // or null; t comes from it then, and `step` is not used
  bool counts;             // the kernel stores t in the counter
  const double* skip;      // or null: unless 0, nothing happens
  double weight_decay;
  double numbers[kMaxRuleNumbers];
};

// `rule`: OptimizerRule::id.
void launch_optimizer(int rule, Float type, const OptimizerArgs& args, const Launch& launch);

// *found = 1 if one of `count` values is not finite.
void launch_find_nonfinite(Float type, const void* values, int64_t count, double* found,
                           const Launch& launch);

// LossScaleCall; `state` has five numbers.
struct LossScaleArgs {
  double* state;
  float* scale32;
  double growth, backoff, least, most, interval;
};
void launch_advance_loss_scale(const LossScaleArgs& args, const Launch& launch);

}  // namespace catena::gpu
