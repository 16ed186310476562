// Host glue of the slots of gated activations.
#include "backends/cuda/activation/gated.h"

#include <initializer_list>

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/gated.h"

namespace catena::gpu {
namespace {

GatedOperand operand(const GatedRows& rows) { return {data_of(rows.array), rows.step}; }

bool are_packs(const GatedArgs& args, int64_t itemsize) {
  if (args.columns * itemsize % 16 != 0) return false;
  for (const GatedOperand* o : {&args.gate, &args.x, &args.y, &args.gy, &args.g_gate, &args.gx}) {
    const bool steps = args.rows == 1 || o->step * itemsize % 16 == 0;
    if (o->data != nullptr && !(aligned16(o->data) && steps)) return false;
  }
  return true;
}

void gated(const GatedCall& call) {
  GatedArgs args{};
  args.rows = call.rows, args.columns = call.columns;
  args.gate = operand(call.gate), args.x = operand(call.x), args.y = operand(call.y);
  const Array& like = *call.gate.array;
  args.packed = are_packs(args, like.itemsize());
  launch_gated(float_code("gated", like.dtype()), Gated(call.function), args, launch_for(like));
  check_launch("gated");
}

void gated_grad(const GatedGradCall& call) {
  GatedArgs args{};
  args.rows = call.rows, args.columns = call.columns;
  args.gate = operand(call.gate), args.x = operand(call.x), args.gy = operand(call.gy);
  args.g_gate = operand(call.g_gate), args.gx = operand(call.gx);
  const Array& like = *call.gate.array;
  args.packed = are_packs(args, like.itemsize());
  launch_gated_grad(float_code("gated_grad", like.dtype()), Gated(call.function), args,
                    launch_for(like));
  check_launch("gated_grad");
}

}  // namespace
}  // namespace catena::gpu

CATENA_FAMILY(cuda, gated) {
  kernels::gated.provide<&gpu::gated>(DeviceType::kCuda, "cuda");
  kernels::gated_grad.provide<&gpu::gated_grad>(DeviceType::kCuda, "cuda");
}
