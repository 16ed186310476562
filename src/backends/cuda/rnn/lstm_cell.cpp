// Host glue of the slots of an LSTM's step.
#include "backends/cuda/rnn/lstm_cell.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/rnn.h"

namespace catena::gpu {
namespace {

void lstm_cell(const LstmCellCall& call) {
  LstmCellArgs args{};
  args.gates = data_of(call.gates);
  args.c_prev = data_of(call.c_prev);
  args.activated = data_of(call.activated);
  args.c = data_of(call.c);
  args.h = data_of(call.h);
  args.sequences = call.c->shape()[0];
  args.cells = call.c->shape()[1];
  launch_lstm_cell(float_code("lstm_cell", call.c->dtype()), args, launch_for(*call.c));
  check_launch("lstm_cell");
}

void lstm_cell_grad(const LstmCellGradCall& call) {
  LstmCellGradArgs args{};
  args.activated = data_of(call.activated);
  args.c_prev = data_of(call.c_prev);
  args.c = data_of(call.c);
  args.gh = data_of(call.gh);
  args.gh_next = data_of(call.gh_next);
  args.gc = data_of(call.gc);
  args.g_gates = data_of(call.g_gates);
  args.gc_prev = data_of(call.gc_prev);
  args.sequences = call.c->shape()[0];
  args.cells = call.c->shape()[1];
  args.of_gates = call.of_gates;
  launch_lstm_cell_grad(float_code("lstm_cell_grad", call.c->dtype()), args, launch_for(*call.c));
  check_launch("lstm_cell_grad");
}

}  // namespace
}  // namespace catena::gpu

CATENA_FAMILY(cuda, rnn) {
  kernels::lstm_cell.provide<&gpu::lstm_cell>(DeviceType::kCuda, "cuda");
  kernels::lstm_cell_grad.provide<&gpu::lstm_cell_grad>(DeviceType::kCuda, "cuda");
}
