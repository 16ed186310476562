// The loops of update rules, compiled once for each x86-64 level; see tables.h. It is not part of
// tables.h, so that a new rule does not recompile the other loops.
#pragma once

#include <cstdint>

#include "catena/kernels/detail/optimizer_limits.h"

namespace catena::host {

// A part of an OptimizerCall: n elements.
struct RuleBlock {
  void* parameter;
  const void* gradient;
  float* master;  // of 16-bit parameters, or null
  void* states[kMaxRuleStates];
  const double* constants;  // from prepare()
  double gradient_scale, weight_decay;
  double rate_factor, decay_factor;
  void* low;         // or null: float16 or bfloat16 copies of float32 parameters
  bool low_is_half;  // float16
  int64_t n;
};

inline constexpr int kFloatDtypes = 4;      // float16, bfloat16, float32, float64
inline constexpr int kMaxRules = 32;        // more than there are rows
inline constexpr int kFirstFloatDtype = 9;  // position of float16 in catena::Dtype

struct RuleLoops {
  void (*prepare[kMaxRules])(double rate, const double* numbers, double t, double* constants);
  // By rule, RuleFormat and dtype of the parameter; null where a rule has no such format.
  void (*step[kMaxRules][kRuleFormats][kFloatDtypes])(const RuleBlock& block);
  double (*ratio[kMaxRules])(const double* numbers, double parameter_norm, double gradient_norm);
  // Of rules with norms of steps, else null: adds the squares of the values that the rule starts
  // from to sums[0], and of its direction to sums[1]. Writes nothing else.
  void (*step_squares[kMaxRules][kFloatDtypes])(const RuleBlock& block, double* sums);
  // The sum of squares of n contiguous elements, in double.
  double (*squares[kFloatDtypes])(const void* values, int64_t n);
  // Whether n contiguous elements include an infinity or NaN.
  bool (*any_nonfinite[kFloatDtypes])(const void* values, int64_t n);
};

}  // namespace catena::host
