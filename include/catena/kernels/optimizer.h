// Updates of parameters by the rules of optimizers, sums of squares by parameter, the check of
// gradients for numbers that are not finite, and the scale of losses that follows from it.
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
  // An array that the rule keeps for every parameter.
  struct State {
    const char* name;  // "m"
    double start;      // of every element
  };
  // A hyper-parameter: its name and its range.
  struct Number {
    const char* name;
    double least, most;
    const char* brackets;  // "[)": least <= value < most
  };
  // The rule's name, and the names of its learning rate, states and hyper-parameters.
  const char* name;
  int id;  // its place among the rows
  const char* rate_name;
  std::vector<State> states;
  std::vector<Number> numbers;
  // Whether the rule scales the rate of each segment by the norms of its parameters and gradients:
  // OptimizerCall::segments and squares must be given.
  bool needs_norms = false;
  // These are norms not of gradients but of what the rule is about to subtract at a rate of one:
  // the slot step_squares gives the squares.
  bool norms_of_steps = false;
};

// All rules, in the order of the rows. They live as long as the process.
const std::vector<OptimizerRule>& optimizer_rules();
// ValueError listing the names when there is none of this name.
const OptimizerRule& optimizer_rule(std::string_view name);

// The parameters of an arena, one after the other: segment s has the elements [starts[s],
// starts[s + 1]). All arrays are contiguous and on the device of the parameters.
struct RuleSegments {
  int64_t count = 0;
  int64_t alignment = 1;          // divides all starts
  const Array* starts = nullptr;  // int64 [count + 1]
  // float64 [count, 3]: factors of the learning rate and of decays, and 0 or 1: frozen.
  const Array* factors = nullptr;

  // Pieces of segments of at most kPiece elements, which are summed one by one.
  static constexpr int64_t kPiece = 16384;
  int64_t piece_count = 0;
  const Array* pieces = nullptr;       // int64 [piece_count + 1]: where they begin
  const Array* first_piece = nullptr;  // int64 [count + 1]: of each segment
};

// One step of a rule over some parameters. Arrays are contiguous, 1-d, of one length and device.
// The length may be 0: nothing is read or written then but `counter`, which counts the update as
// ever.
//
// Parameter and gradient have one floating dtype. States have it too, but of 16-bit parameters they
// are float32, and there is a master copy: the rule reads and writes that, and the parameter
// becomes its value rounded to nearest even. Where the parameter is not that of its master copy,
// somebody else has written it, and the rule starts from the parameter. Adam and AdamW also take
// bfloat16 states, of all parameters but float64, and 16-bit parameters without a master copy: what
// they compute is rounded to nearest even wherever it is stored. Rules compute in float32,
// of float64 in float64. The gradient is multiplied by `gradient_scale` first (clipping, averages,
// loss scales); then weight_decay * parameter is added. Elements of frozen segments stay as they
// are, the update counts all the same.
struct OptimizerCall {
  const OptimizerRule* rule = nullptr;
  const Array* parameter = nullptr;
  const Array* gradient = nullptr;
  const Array* master = nullptr;  // float32, of 16-bit parameters; or null
  const Array* low = nullptr;  // float16 or bfloat16: becomes the new value of float32 parameters
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
  // Numbers by segment, or null: all factors are 1 and nothing is frozen. `first` is the place of
  // the first element in the arena.
  const RuleSegments* segments = nullptr;
  int64_t first = 0;
  // Of rules that need norms: float64 [2, segments], sums of squares of the parameters (of the
  // master copies, if there are some) and of the gradients in memory, or of steps as in
  // StepSquaresCall.
  const Array* squares = nullptr;
};

// sums[k][s] = sum of the squares of the elements of values[k] in segment s, for one or two arrays
// of one length: contiguous, floating. They are the arena's elements from `first` on; others count
// as zeros. The order of additions depends on the segments and `first` alone, so that equal values
// give equal bits. partial (float64 [count, pieces]) and sums (float64
// [count, segments]) are contiguous.
struct SegmentSquaresCall {
  const RuleSegments* segments = nullptr;
  int count = 1;
  const Array* values[2] = {};
  const Array* partial = nullptr;
  const Array* sums = nullptr;
  int64_t first = 0;
};

// Of a rule with norms of steps: sums of squares as in SegmentSquaresCall, of the values that it
// starts from, sums[0], and of what it is about to subtract from them at a rate of one, sums[1].
// `update` is the call that follows, with segments and without squares; its `skip` is not read.
// Nothing but partial (float64 [2, pieces]) and sums (float64 [2, segments]) is written.
struct StepSquaresCall {
  const OptimizerCall* update = nullptr;
  const Array* partial = nullptr;
  const Array* sums = nullptr;
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

// The slots of the calls above.
extern Slot<OptimizerCall> optimizer_update;
extern Slot<SegmentSquaresCall> segment_squares;
extern Slot<StepSquaresCall> step_squares;
extern Slot<NonFiniteCall> find_nonfinite;
extern Slot<LossScaleCall> advance_loss_scale;

}  // namespace kernels

}  // namespace catena
