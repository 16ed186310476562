// Everything that decides how cuDNN computes a convolution.
#pragma once

#include <cstdint>

#include "backends/common/convolution_problem.h"
#include "catena/core/config.h"

namespace catena::cudnn {

// x, y and the weights have one layout: with channels last the weights are (O, kh, kw, C / groups)
// in memory. `bias` means that it is added in the same graph.
struct Problem : ConvolutionProblem {
  Precision precision;
  bool deterministic;
  bool tuned;  // of several plans the fastest is taken (CATENA_CONVOLUTION_TUNE)
  int device;
  int64_t alignment_x, alignment_w, alignment_b, alignment_y;  // bytes
  int64_t workspace_limit;

  // Whether all digits of the dtype must be right.
  bool is_exact() const {
    return dtype == Dtype::kFloat64 ||
           (dtype == Dtype::kFloat32 && precision == Precision::kFloat32);
  }
  // All but the device, to a PlanKey or a PlanText.
  template <class Key>
  void describe(Key& key) const {
    ConvolutionProblem::describe(key);
    key << int(precision) << deterministic << alignment_x << alignment_w << alignment_b
        << alignment_y << workspace_limit << tuned;
  }
};

}  // namespace catena::cudnn
