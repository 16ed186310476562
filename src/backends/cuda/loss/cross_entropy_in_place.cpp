// Host glue of the cross entropy whose gradient replaces the scores.
#include "backends/cuda/loss/cross_entropy_in_place.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/loss.h"

namespace catena::gpu {
namespace {

void cross_entropy_in_place(const CrossEntropyInPlaceCall& call) {
  InPlaceArgs args{};
  args.x = call.x.raw_data();
  args.t = call.t.data<int32_t>();
  args.outer = call.x.shape()[0];
  args.classes = call.x.shape()[1];
  args.inner = call.x.shape()[2];
  args.labels = call.labels > 0 ? call.labels : args.classes;
  args.ignore_label = call.ignore_label;
  args.normalize = call.normalize;
  args.aligned = aligned16(args.x);
  args.losses = call.losses.raw_data();
  args.loss = data_of(call.loss);
  args.divisor = data_of(call.divisor);
  args.counted = data_of(call.counted);
  args.gloss = data_of(call.gloss);
  args.weights = data_of(call.weights);
  args.spread = data_of(call.spread);
  args.total = data_of(call.total);
  args.factors = data_of(call.factors);
  args.z_loss = call.z_loss;
  args.losses_only = call.losses_only;
  const char* who = "softmax_cross_entropy_in_place";
  const Float type = float_code(who, call.x.dtype());
  const Launch launch = launch_for(call.x);
  if (call.counts) launch_count_labels(type, args, launch);
  if (call.x.size() > 0) {
    const int shared_memory = device_info(launch.device).max_shared_memory;
    launch_cross_entropy_in_place(type, args, shared_memory, launch);
  }
  if (args.loss) launch_sum_losses(type, args, launch);
  check_launch(who);
}

void scale_samples(const ScaleSamplesCall& call) {
  const auto& [x, factors, expected] = call;
  if (x.size() == 0) return;
  ScaleSamplesArgs args{};
  args.x = x.raw_data();
  args.outer = x.shape()[0];
  args.classes = x.shape()[1];
  args.inner = x.shape()[2];
  args.factors = factors.raw_data();
  args.single = factors.ndim() == 0;
  args.aligned = aligned16(args.x);
  args.expected = data_of(expected);
  launch_scale_samples(float_code("scale_samples", x.dtype()), args, launch_for(x));
  check_launch("scale_samples");
}

}  // namespace
}  // namespace catena::gpu

CATENA_FAMILY(cuda, cross_entropy_in_place) {
  kernels::softmax_cross_entropy_in_place.provide<&gpu::cross_entropy_in_place>(DeviceType::kCuda,
                                                                                "cuda");
  kernels::scale_samples.provide<&gpu::scale_samples>(DeviceType::kCuda, "cuda");
}
