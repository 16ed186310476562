// Host glue of the batch normalization slots.
#include "backends/cuda/normalization/normalization.h"

#include "backends/cuda/register.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/normalization.h"
#include "core/compute_dtype.h"

namespace catena::gpu {
namespace {

void* data_of(const Array* a) { return a ? a->raw_data() : nullptr; }

// A null pointer counts as aligned.
template <class... Pointers>
bool all_aligned(const Pointers*... pointers) {
  return (aligned16(pointers) && ...);
}

// Memory of one call for `numbers` numbers of the compute type for each channel.
Array scratch(const Array& x, const ChannelLayout& layout, int64_t numbers) {
  return Array::uninitialized({numbers, layout.channels}, compute_dtype(x.dtype()), x.device());
}

// The arguments that training and fixed statistics share.
template <class Call>
NormalizationArgs arguments(const Call& call) {
  NormalizationArgs args{};
  args.outer = call.layout.outer;
  args.channels = call.layout.channels;
  args.inner = call.layout.inner;
  args.x = call.x->raw_data();
  args.gamma = data_of(call.gamma);
  args.beta = data_of(call.beta);
  args.residual = data_of(call.residual);
  args.y = call.y->raw_data();
  args.mean = call.mean->raw_data();
  args.eps = call.eps;
  args.relu = call.relu;
  args.aligned = all_aligned(args.x, args.residual, static_cast<const void*>(args.y));
  return args;
}

int splits_for(Float type, const ChannelLayout& layout, bool aligned, const Launch& launch) {
  return normalization_splits(type, layout.outer, layout.channels, layout.inner, aligned, launch);
}

void batch_normalization(const BatchNormalizationCall& call) {
  const Float type = float_code("batch_normalization", call.x->dtype());
  NormalizationArgs args = arguments(call);
  args.inverse_deviation = call.inverse_deviation->raw_data();
  args.running_mean = data_of(call.running_mean);
  args.running_variance = data_of(call.running_variance);
  args.decay = call.decay;
  args.updates = call.updates ? call.updates->data<int64_t>() : nullptr;
  const Launch launch = launch_for(*call.x);
  args.splits = splits_for(type, call.layout, args.aligned, launch);
  const Array partials = scratch(*call.x, call.layout, 2 * args.splits);
  args.partials = partials.raw_data();
  launch_normalization_statistics(type, args, launch);
  launch_normalization_apply(type, args, launch);
  check_launch("batch_normalization");
}

void fixed_batch_normalization(const FixedBatchNormalizationCall& call) {
  NormalizationArgs args = arguments(call);
  args.variance = call.variance->raw_data();
  launch_normalization_apply(float_code("fixed_batch_normalization", call.x->dtype()), args,
                             launch_for(*call.x));
  check_launch("fixed_batch_normalization");
}

NormalizationGradArgs arguments(const BatchNormalizationGradCall& call) {
  NormalizationGradArgs args{};
  args.outer = call.layout.outer;
  args.channels = call.layout.channels;
  args.inner = call.layout.inner;
  args.x = call.x->raw_data();
  args.gy = call.gy->raw_data();
  args.y = data_of(call.y);
  args.gamma = data_of(call.gamma);
  args.mean = call.mean->raw_data();
  args.inverse_deviation = call.inverse_deviation->raw_data();
  args.fixed = call.fixed;
  args.gx = data_of(call.gx);
  args.g_residual = data_of(call.g_residual);
  args.g_gamma = data_of(call.g_gamma);
  args.g_beta = data_of(call.g_beta);
  args.accumulate_gamma = call.accumulate_gamma;
  args.accumulate_beta = call.accumulate_beta;
  args.aligned = all_aligned(args.x, args.gy, args.y, static_cast<const void*>(args.gx),
                             static_cast<const void*>(args.g_residual));
  return args;
}

void batch_normalization_grad(const BatchNormalizationGradCall& call) {
  const Float type = float_code("batch_normalization_grad", call.x->dtype());
  NormalizationGradArgs args = arguments(call);
  const Launch launch = launch_for(*call.x);
  args.splits = splits_for(type, call.layout, args.aligned, launch);
  const bool needs_sums = !call.fixed || call.g_gamma != nullptr || call.g_beta != nullptr;
  const Array partials = needs_sums ? scratch(*call.x, call.layout, 2 * args.splits + 2) : Array();
  if (needs_sums) {
    args.partials = partials.raw_data();
    args.sums = static_cast<char*>(args.partials) +
                2 * args.splits * call.layout.channels * partials.itemsize();
    launch_normalization_sums(type, args, launch);
  }
  if (call.gx != nullptr) launch_normalization_gradient(type, args, launch);
  check_launch("batch_normalization_grad");
}

}  // namespace

void register_normalization_kernels() {
  kernels::batch_normalization.provide<&batch_normalization>(DeviceType::kCuda, "cuda");
  kernels::fixed_batch_normalization.provide<&fixed_batch_normalization>(DeviceType::kCuda, "cuda");
  kernels::batch_normalization_grad.provide<&batch_normalization_grad>(DeviceType::kCuda, "cuda");
}

}  // namespace catena::gpu
