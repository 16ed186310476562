// Host glue of the ctc slots.
#include "backends/cuda/loss/ctc.h"

#include "backends/common/family.h"
#include "backends/cuda/loss/grid_sum_scratch.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/ctc.h"

namespace catena::gpu {
namespace {

CtcArgs arguments(const CtcCall& call) {
  CtcArgs args{};
  args.x = call.x->raw_data();
  args.t = call.t->data<int32_t>();
  args.input_lengths = call.input_lengths ? call.input_lengths->data<int32_t>() : nullptr;
  args.label_lengths = call.label_lengths ? call.label_lengths->data<int32_t>() : nullptr;
  args.steps = call.x->shape()[0];
  args.batch = call.x->shape()[1];
  args.classes = call.x->shape()[2];
  args.labels = call.t->shape()[1];
  args.positions = call.alpha->shape()[2];
  args.blank = call.blank;
  args.factor = call.factor;
  args.norms = call.norms->raw_data();
  args.alpha = call.alpha->raw_data();
  args.losses = call.losses->raw_data();
  args.loss = call.loss->raw_data();
  args.one_each = call.loss->ndim() == 1;
  return args;
}

void ctc(const CtcCall& call) {
  CtcArgs args = arguments(call);
  const Launch launch = launch_for(*call.x);
  const int blocks = ctc_blocks(args);
  StoragePtr scratch;
  if (!args.one_each) scratch = add_scratch(args.scratch, blocks, call.x->device(), launch);
  launch_ctc(float_code("ctc", call.x->dtype()), args, blocks, launch);
  check_launch("ctc");
}

void ctc_grad(const CtcGradCall& call) {
  CtcArgs args = arguments(call.forward);
  args.gloss = call.gloss.raw_data();
  args.gx = call.gx.raw_data();
  const Device device = call.gx.device();
  const Array rows =
      Array::uninitialized({args.batch, 4, args.positions}, call.forward.alpha->dtype(), device);
  const Array next = Array::uninitialized({args.batch, args.labels}, Dtype::kInt32, device);
  args.rows = rows.raw_data();
  args.next = args.labels > 0 ? next.data<int32_t>() : nullptr;
  launch_ctc_grad(float_code("ctc_grad", call.gx.dtype()), args, launch_for(call.gx));
  check_launch("ctc_grad");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, ctc) {
  kernels::ctc.provide<&gpu::ctc>(DeviceType::kCuda, "cuda");
  kernels::ctc_grad.provide<&gpu::ctc_grad>(DeviceType::kCuda, "cuda");
}
