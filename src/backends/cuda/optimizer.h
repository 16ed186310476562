// Update rules over one contiguous range of parameters: plain arguments of the kernels.
#pragma once

#include "backends/cuda/launch.h"

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

enum class Rule : uint8_t { kSgd, kMomentumSgd, kAdam };

struct OptimizerArgs {
  void* parameter;
  const void* gradient;
  void* states[2];
  int64_t count;
  bool aligned;  // all addresses are multiples of 16
  StepNumber learning_rate, step, gradient_scale;
  UpdateCounter* counter;  // or null; t comes from it then, and `step` is not used
  double weight_decay, beta1, beta2, epsilon;
};

void launch_optimizer(Rule rule, Float type, const OptimizerArgs& args, const Launch& launch);

}  // namespace catena::gpu
