// Update rules over one contiguous range of parameters, and the kernels of loss scaling: plain
// arguments.
#pragma once

#include "backends/cuda/runtime/launch.h"
#include "catena/kernels/detail/optimizer_limits.h"

namespace catena::gpu {

// A number from the host, or one that the kernel reads from the device when it runs.
struct StepNumber {
  double value;
  const double* float_address;  // one of these, or neither
  const int64_t* integer_address;
};

// OptimizerCall::counter for the kernels. `arrived` is 0 between kernels.
struct UpdateCounter {
  double updates;    // completed before this kernel
  unsigned arrived;  // blocks of the running kernel that have read `updates`
};

// RuleSegments for the kernels; no starts: one segment with factors of 1.
struct SegmentArgs {
  const int64_t* starts;
  const double* factors;
  const double* squares;  // of rules that need norms
  int64_t count;
};

struct OptimizerArgs {
  void* parameter;
  const void* gradient;
  float* master;     // of 16-bit parameters, or null
  void* low;         // or null: 16-bit copies of float32 parameters
  bool low_is_half;  // float16
  void* states[kMaxRuleStates];
  int64_t count;
  bool aligned;  // packs can be read, and none is part of two segments
  SegmentArgs segments;
  int64_t first;  // place of the first element in the arena
  StepNumber learning_rate, step, gradient_scale;
  UpdateCounter* counter;  // or null; if given, t comes from it and `step` is unused
  bool counts;             // the kernel stores t in the counter
  const double* skip;      // or null; if nonzero, nothing is updated
  double weight_decay;
  double numbers[kMaxRuleNumbers];
};

// `rule`: OptimizerRule::id. False, and nothing is done, where there is no such kernel.
bool launch_optimizer(int rule, RuleFormat format, Float type, const OptimizerArgs& args,
                      const Launch& launch);
// The same for all formats but kWide.
bool launch_format(int rule, RuleFormat format, Float type, const OptimizerArgs& args,
                   const Launch& launch);

// Sums of squares by segment of one array, see SegmentSquaresCall.
struct SquaresArgs {
  const void* values;
  int64_t first, count;        // which elements the values are
  const int64_t* pieces;       // where they begin
  const int64_t* first_piece;  // of each segment
  int64_t piece_count, segment_count;
  double* partial;
  double* sums;
};
void launch_segment_squares(Float type, const SquaresArgs& args, const Launch& launch);

// The same of the values from which a rule with norms of steps starts and of its direction, see
// StepSquaresCall: `squares` has everything but `values`, of the first array.
void launch_step_squares(int rule, Float type, const OptimizerArgs& args,
                         const SquaresArgs& squares, const Launch& launch);

// *found = 1 if one of `count` values is not finite.
void launch_find_nonfinite(Float type, const void* values, int64_t count, double* found,
                           const Launch& launch);

// The kernel of a LossScaleCall; `state` has five numbers.
struct LossScaleArgs {
  double* state;
  float* scale32;
  double growth, backoff, least, most, interval;
};
void launch_advance_loss_scale(const LossScaleArgs& args, const Launch& launch);

}  // namespace catena::gpu
