// Gated activations and their gradients: plain arguments. Names as in catena/kernels/gated.h.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

enum class Gated : uint8_t { kSilu, kGelu, kGeluTanh };  // as GateFunction

struct GatedOperand {
  void* data;  // null: not wanted
  int64_t step;
};
// The gradients' call has gy, g_gate and gx, the other one y.
struct GatedArgs {
  int64_t rows, columns;
  bool packed;  // all addresses, steps and columns are multiples of 16 bytes
  GatedOperand gate, x, y, gy, g_gate, gx;
};

void launch_gated(Float type, Gated function, const GatedArgs& args, const Launch& launch);
void launch_gated_grad(Float type, Gated function, const GatedArgs& args, const Launch& launch);

}  // namespace catena::gpu
