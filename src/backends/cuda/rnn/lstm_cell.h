// One step of an LSTM and its gradient: plain arguments. Null pointers as in catena/kernels/rnn.h.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

struct LstmCellArgs {
  const void *gates, *c_prev;
  void *activated, *c, *h;
  int64_t sequences, cells;
};
struct LstmCellGradArgs {
  const void *activated, *c_prev, *c, *gh, *gh_next, *gc;
  void *g_gates, *gc_prev;
  int64_t sequences, cells;
  bool of_gates;
};

void launch_lstm_cell(Float type, const LstmCellArgs& args, const Launch& launch);
void launch_lstm_cell_grad(Float type, const LstmCellGradArgs& args, const Launch& launch);

}  // namespace catena::gpu
