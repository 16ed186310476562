// Everything that decides how cuDNN computes a convolution.
#pragma once

#include <array>
#include <cstdint>

#include "backends/common/convolution_sizes.h"
#include "catena/core/config.h"
#include "catena/core/dtype.h"

namespace catena::cudnn {

enum class Operation : uint8_t { kForward, kGradX, kGradW };

// x, y and the weights have one layout: with channels last the weights are (O, kh, kw, C / groups)
// in memory.
struct Problem : ConvolutionSizes {
  Operation operation;
  Dtype dtype;
  Precision precision;
  bool deterministic, channels_last;
  bool bias;        // added in the same graph
  bool accumulate;  // beta = 1
  int device;
  int64_t alignment_x, alignment_w, alignment_b, alignment_y;  // bytes
  int64_t workspace_limit;

  using Key = std::array<int64_t, 19>;
  Key key() const {
    const int64_t flags = int64_t(operation) | int64_t(dtype) << 4 | int64_t(precision) << 12 |
                          int64_t(deterministic) << 16 | int64_t(channels_last) << 17 |
                          int64_t(bias) << 18 | int64_t(accumulate) << 19 | int64_t(device) << 20;
    const int64_t alignments =
        alignment_x | alignment_w << 12 | alignment_b << 24 | alignment_y << 36;
    return {flags,   alignments, workspace_limit, batch,       channels,  height,    width,
            filters, out_height, out_width,       kernel[0],   kernel[1], stride[0], stride[1],
            pad[0],  pad[1],     dilation[0],     dilation[1], groups};
  }
};

}  // namespace catena::cudnn
