// Updates of parameters by the rules of optimizers.
#pragma once

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// A number of the training step that a graph replay must be able to change: the host's value, or a
// 0-d float64 (or int64 for counts) device array while a graph is captured.
struct StepValue {
  double value = 0;
  const Array* device_value = nullptr;
};

// Hyper-parameters of one optimizer step. All arrays of a call are contiguous, 1-d, of one length
// and dtype (float16/bfloat16 parameters with float32 states are not part of this slot). The length
// may be 0: nothing is read or written then but `counter`, which counts the update as ever.
// The rule multiplies the gradient by `gradient_scale` first (clipping, averaging).
struct OptimizerCall {
  const Array* parameter;
  const Array* gradient;
  const Array* states[2] = {nullptr, nullptr};
  StepValue learning_rate;
  StepValue step;  // t of this update, from 1
  // Or, instead of `step`, where t is counted: float64 [t - 1, 0], contiguous, on the device of
  // the parameters. The rule takes t from it and stores t: the count costs no extra kernel.
  const Array* counter = nullptr;
  StepValue gradient_scale{1};
  double weight_decay = 0;  // g += weight_decay * p before the rule
  double beta1 = 0, beta2 = 0, epsilon = 0;
};

namespace kernels {

extern Slot<OptimizerCall> sgd;           // p -= lr g
extern Slot<OptimizerCall> momentum_sgd;  // v = beta1 v - lr g; p += v (states[0] = v)
// Kingma & Ba 2015: m, v = states; p -= lr sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + eps)
extern Slot<OptimizerCall> adam;

}  // namespace kernels

}  // namespace catena
