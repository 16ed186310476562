// Updates of parameters by the rules of optimizers, the check of gradients for numbers that are not
// finite, and the scale of losses that follows from it.
#pragma once

#include <string_view>
#include <vector>

#include "catena/kernels/detail/optimizer_limits.h"
#include "catena/kernels/slot.h"

namespace catena {

class Array;

// A number of the training step that a graph replay must be able to change: the host's value, or a
// 0-d float64 (or int64 for counts) device array while a graph is captured.
struct StepValue {
  double value = 0;
  const Array* device_value = nullptr;
};

// A row of detail/optimizer_rules.def: what is known of a rule without running it.
struct OptimizerRule {
  struct State {
    const char* name;
    double start;  // of every element
  };
  struct Number {
    const char* name;
    double preset, least, most;
    const char* brackets;  // "[)": least <= value < most
  };
  const char* name;
  int id;  // its place among the rows
  const char* rate_name;
  double rate;  // preset
  std::vector<State> states;
  std::vector<Number> numbers;
};

// All rules, in the order of the rows. They live as long as the process.
const std::vector<OptimizerRule>& optimizer_rules();
// ValueError listing the names when there is none of this name.
const OptimizerRule& optimizer_rule(std::string_view name);

// One step of a rule over some parameters. Arrays are contiguous, 1-d, of one length and device.
// The length may be 0: nothing is read or written then but `counter`, which counts the update as
// ever.
//
// Parameter and gradient have one floating dtype. States have it too, but of 16-bit parameters they
// are float32, and there is a master copy: the rule reads and writes that, and the parameter
// becomes its value rounded to nearest even. Where the parameter is not that of its master copy,
// somebody else has written it, and the rule starts from the parameter. Rules compute in float32,
// of float64 in float64. The gradient is multiplied by `gradient_scale` first (clipping, averages,
// loss scales); then weight_decay * parameter is added.
struct OptimizerCall {
  const OptimizerRule* rule;
  const Array* parameter;
  const Array* gradient;
  const Array* master = nullptr;  // float32, of 16-bit parameters
  const Array* states[kMaxRuleStates] = {};
  StepValue learning_rate;
  StepValue step;  // t of this update, from 1
  // Or, instead of `step`, where t is counted: float64 [t - 1, 0], contiguous, on the device of
  // the parameters. The rule takes t from it and, with `counts`, stores t: the count costs no
  // extra kernel. An update of several calls counts in the last.
  const Array* counter = nullptr;
  bool counts = true;
  StepValue gradient_scale{1};
  // 0-d float64 on the device, or null: unless it is 0, nothing is updated or counted.
  const Array* skip = nullptr;
  double weight_decay = 0;
  double numbers[kMaxRuleNumbers] = {};  // in the order of the row
};

// found = 1 if there is an infinity or NaN among the values, else `found` stays as it is. Values:
// contiguous, of a floating dtype, any length; found: one float64 on the same device.
struct NonFiniteCall {
  const Array* values;
  const Array* found;
};

// Moves a loss scale on after an update (P. Micikevicius et al., Mixed precision training, ICLR
// 2018). `state` is contiguous float64 [scale, 1 / scale, good steps, found, skipped steps]. With
// `found` the scale is multiplied by backoff and the step counts as skipped, else it is a good one,
// and after `interval` of these in a row the scale is multiplied by growth; always within [least,
// most]. `found` becomes 0, and scale32, one float32, the scale.
struct LossScaleCall {
  const Array* state;
  const Array* scale32;
  double growth, backoff, least, most;
  double interval;
};

namespace kernels {

extern Slot<OptimizerCall> optimizer_update;
extern Slot<NonFiniteCall> find_nonfinite;
extern Slot<LossScaleCall> advance_loss_scale;

}  // namespace kernels

}  // namespace catena
