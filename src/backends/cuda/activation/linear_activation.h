// The gradient through an activation behind a linear layer, with the sums of its columns: plain
// arguments. Names as in catena/kernels/linear.h.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

enum class Activated : uint8_t { kRelu, kGelu, kGeluTanh };  // as LinearActivation

struct ActivationGradArgs {
  int64_t rows, columns;
  bool packed;  // all addresses and columns are multiples of 16 bytes
  const void *gy, *kept;
  void* gx;
  void* sums;  // null: not wanted
  bool accumulate;
  bool wide_sums;  // of the type of computation
  // Set by plan_activation_grad.
  int across;       // threads side by side in a row; the others of a block have other rows
  int64_t parts;    // of the rows, one for each block of a column of blocks
  int64_t of_part;  // rows
  // The sums of each part, (parts, columns) of the type of computation, where sums are wanted.
  void* partials;
};

// Divides the work. `itemsize`: of the type.
void plan_activation_grad(ActivationGradArgs& args, int64_t itemsize, const Launch& launch);
void launch_activation_grad(Float type, Activated function, const ActivationGradArgs& args,
                            const Launch& launch);

}  // namespace catena::gpu
