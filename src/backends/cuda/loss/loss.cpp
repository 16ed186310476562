// Host glue of the loss and accuracy slots.
#include "backends/cuda/loss/loss.h"

#include "backends/common/family.h"
#include "backends/cuda/loss/grid_sum_scratch.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/loss.h"

namespace catena::gpu {
namespace {

SampleArgs samples_of(const Array& x, const Array& t) {
  SampleArgs s{};
  s.x = x.raw_data();
  s.t = t.data<int32_t>();
  s.outer = x.shape()[0];
  s.classes = x.shape()[1];
  s.inner = x.shape()[2];
  return s;
}

CrossEntropyArgs arguments(const CrossEntropyCall& call) {
  CrossEntropyArgs args{};
  args.samples = samples_of(*call.x, *call.t);
  args.samples.has_ignore = true;
  args.samples.ignore_label = call.ignore_label;
  args.normalize = call.normalize;
  args.lse = call.lse->raw_data();
  args.count = call.count->raw_data();
  args.counted = data_of(call.counted);
  args.loss = data_of(call.loss);
  return args;
}

void cross_entropy(const CrossEntropyCall& call) {
  CrossEntropyArgs args = arguments(call);
  args.wide_loss = call.loss->dtype() != call.x->dtype();
  args.aligned = aligned16(args.samples.x);
  const Launch launch = launch_for(*call.x);
  const int blocks = sample_blocks(args.samples, launch);
  const StoragePtr scratch = add_scratch(args.samples.scratch, blocks, call.x->device(), launch);
  launch_cross_entropy(float_code("softmax_cross_entropy", call.x->dtype()), args, blocks, launch);
  check_launch("softmax_cross_entropy");
}

void cross_entropy_grad(const CrossEntropyGradCall& call) {
  const auto& [forward, gloss, gx, factors, spread] = call;
  if (gx.size() == 0) return;
  CrossEntropyArgs args = arguments(forward);
  args.gloss = gloss.raw_data();
  args.wide_loss = gloss.dtype() != gx.dtype();
  args.gx = gx.raw_data();
  args.factors = data_of(factors);
  args.spread = data_of(spread);
  args.aligned = aligned16(args.samples.x, args.gx);
  launch_cross_entropy_grad(float_code("softmax_cross_entropy_grad", gx.dtype()), args,
                            launch_for(gx));
  check_launch("softmax_cross_entropy_grad");
}

void accuracy(const AccuracyCall& call) {
  const auto& [x, t, has_ignore, ignore_label, result] = call;
  SampleArgs args = samples_of(x, t);
  args.has_ignore = has_ignore;
  args.ignore_label = ignore_label;
  const Launch launch = launch_for(x);
  const int blocks = sample_blocks(args, launch);
  const StoragePtr scratch = add_scratch(args.scratch, blocks, x.device(), launch);
  launch_accuracy(float_code("accuracy", x.dtype()), args, result.raw_data(), blocks, launch);
  check_launch("accuracy");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, loss) {
  kernels::softmax_cross_entropy.provide<&gpu::cross_entropy>(DeviceType::kCuda, "cuda");
  kernels::softmax_cross_entropy_grad.provide<&gpu::cross_entropy_grad>(DeviceType::kCuda, "cuda");
  kernels::accuracy.provide<&gpu::accuracy>(DeviceType::kCuda, "cuda");
}
