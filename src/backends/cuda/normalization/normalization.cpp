// Host glue of the batch normalization slots.
#include "backends/cuda/normalization/normalization.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/normalization.h"

namespace catena::gpu {
namespace {

static_assert(kMomentsUnit == kMomentsCountUnit);

template <class Args>
Args arguments_for(const ChannelLayout& layout) {
  Args args{};
  args.outer = layout.outer;
  args.channels = layout.channels;
  args.inner = layout.inner;
  return args;
}

// The arguments that training and fixed statistics share.
template <class Call>
NormalizationArgs arguments(const Call& call) {
  auto args = arguments_for<NormalizationArgs>(call.layout);
  args.x = call.x->raw_data();
  args.gamma = data_of(call.gamma);
  args.beta = data_of(call.beta);
  args.residual = data_of(call.residual);
  args.y = call.y->raw_data();
  args.mean = call.mean->raw_data();
  args.eps = call.eps;
  args.relu = call.relu;
  args.aligned = aligned16(args.x, args.residual, args.y);
  return args;
}

NormalizationWalk walk_for(Float type, const ChannelLayout& layout, bool aligned,
                           const Launch& launch) {
  return normalization_walk(type, layout.outer, layout.channels, layout.inner, aligned, launch);
}

int64_t size_of(const ChannelLayout& layout) { return layout.count() * layout.channels; }

Array mask_memory(const Array& x, int64_t bytes) {
  return Array::uninitialized({bytes}, Dtype::kUInt8, x.device());
}

// Where y was positive in a forward call. The backward call may walk otherwise, if only one of them
// has aligned arrays; then it cannot use the mask.
struct ReluMask final : KeptState {
  Array mask;
  int elements;  // of a byte
};

void batch_normalization_grad(const BatchNormalizationGradCall& call);

// Makes the mask of a forward call and keeps it, if a backward call will follow.
template <class Call>
uint8_t* keep_mask(const Call& call, const NormalizationWalk& walk) {
  if (!call.relu || call.kept == nullptr) return nullptr;
  auto* state = new ReluMask;
  IntrusivePtr<const KeptState> owner(state);
  state->elements = walk.mask_elements;
  state->mask = mask_memory(*call.x, size_of(call.layout) / walk.mask_elements);
  call.kept->template keep<&batch_normalization_grad>(std::move(owner));
  return state->mask.template data<uint8_t>();
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
  const NormalizationWalk walk = walk_for(type, call.layout, args.aligned, launch);
  const Array partials = scratch_for(*call.x, walk.partials + call.layout.channels);
  args.splits = walk.splits;
  args.partials = partials.raw_data();
  args.mean_rest = call.mean_rest ? call.mean_rest->raw_data()
                                  : static_cast<char*>(args.partials) +
                                        walk.partials * static_cast<int64_t>(partials.itemsize());
  if (call.residual != nullptr) args.mask = keep_mask(call, walk);
  launch_normalization_statistics(type, args, launch);
  launch_normalization_apply(type, args, launch);
  check_launch("batch_normalization");
}

void batch_moments(const BatchMomentsCall& call) {
  const Float type = float_code("batch_moments", call.x->dtype());
  auto args = arguments_for<NormalizationArgs>(call.layout);
  args.x = call.x->raw_data();
  args.aligned = aligned16(args.x);
  args.moments = call.moments->raw_data();
  const Launch launch = launch_for(*call.x);
  const NormalizationWalk walk = walk_for(type, call.layout, args.aligned, launch);
  const Array partials = scratch_for(*call.x, walk.partials);
  args.splits = walk.splits;
  args.partials = partials.raw_data();
  launch_normalization_statistics(type, args, launch);
  check_launch("batch_moments");
}

void merge_moments(const MergeMomentsCall& call) {
  MergeMomentsArgs args{};
  args.parts = call.moments->shape()[0];
  args.channels = call.mean->size();
  args.moments = call.moments->raw_data();
  args.eps = call.eps;
  args.mean = call.mean->raw_data();
  args.mean_rest = call.mean_rest->raw_data();
  args.inverse_deviation = call.inverse_deviation->raw_data();
  args.count = call.count->raw_data();
  args.running_mean = data_of(call.running_mean);
  args.running_variance = data_of(call.running_variance);
  args.decay = call.decay;
  args.updates = call.updates ? call.updates->data<int64_t>() : nullptr;
  launch_merge_moments(float_code("merge_moments", call.mean->dtype()), args,
                       launch_for(*call.mean));
  check_launch("merge_moments");
}

void fixed_batch_normalization(const FixedBatchNormalizationCall& call) {
  const Float type = float_code("fixed_batch_normalization", call.x->dtype());
  NormalizationArgs args = arguments(call);
  args.variance = data_of(call.variance);
  args.inverse_deviation = data_of(call.inverse_deviation);
  args.mean_rest = data_of(call.mean_rest);
  const Launch launch = launch_for(*call.x);
  if (call.kept != nullptr)
    args.mask = keep_mask(call, walk_for(type, call.layout, args.aligned, launch));
  launch_normalization_apply(type, args, launch);
  check_launch("fixed_batch_normalization");
}

NormalizationGradArgs arguments(const BatchNormalizationGradCall& call) {
  auto args = arguments_for<NormalizationGradArgs>(call.layout);
  args.x = call.x->raw_data();
  args.gy = call.gy->raw_data();
  args.gamma = data_of(call.gamma);
  args.beta = data_of(call.beta);
  args.mean = call.mean->raw_data();
  args.mean_rest = data_of(call.mean_rest);
  args.inverse_deviation = call.inverse_deviation->raw_data();
  args.fixed = call.fixed;
  args.gx = data_of(call.gx);
  args.g_residual = data_of(call.g_residual);
  args.g_gamma = data_of(call.g_gamma);
  args.g_beta = data_of(call.g_beta);
  args.accumulate_gamma = call.accumulate_gamma;
  args.accumulate_beta = call.accumulate_beta;
  args.sums = data_of(call.given_sums ? call.given_sums : call.sums);
  args.count = data_of(call.given_count);
  args.sums_weight = call.sums_weight;
  args.aligned = aligned16(args.x, args.gy, args.gx, args.g_residual);
  return args;
}

// With given statistics the inverse deviation may be rounded otherwise than in the forward call.
Relu way_through(const BatchNormalizationGradCall& call) {
  if (call.y == nullptr) return Relu::kNone;
  return call.y_follows_from_x && !call.fixed ? Relu::kFromX : Relu::kMask;
}

// The mask of the forward call, or a new one made from y, so that the kernels need not read y.
Array backward_mask(Float type, const BatchNormalizationGradCall& call,
                    const NormalizationWalk& walk, const Launch& launch) {
  const int64_t size = size_of(call.layout);
  const ReluMask* kept =
      call.kept ? call.kept->state<&batch_normalization_grad, ReluMask>() : nullptr;
  if (kept && kept->elements == walk.mask_elements) return kept->mask;
  const Array made = mask_memory(*call.x, size / walk.mask_elements);
  launch_normalization_mask(type, call.y->raw_data(), size, made.data<uint8_t>(),
                            walk.mask_elements, launch);
  return made;
}

void batch_normalization_grad(const BatchNormalizationGradCall& call) {
  const Float type = float_code("batch_normalization_grad", call.x->dtype());
  NormalizationGradArgs args = arguments(call);
  const Launch launch = launch_for(*call.x);
  const NormalizationWalk walk = walk_for(type, call.layout, args.aligned, launch);
  args.relu = way_through(call);
  const Array mask = args.relu == Relu::kMask ? backward_mask(type, call, walk, launch) : Array();
  if (mask.defined()) args.mask = mask.data<uint8_t>();
  args.splits = walk.splits;
  const bool needs_sums = call.given_sums == nullptr &&
                          (!call.fixed || call.g_gamma != nullptr || call.g_beta != nullptr);
  const Array partials =
      needs_sums ? scratch_for(*call.x, walk.partials + 2 * call.layout.channels) : Array();
  if (needs_sums) {
    args.partials = partials.raw_data();
    if (args.sums == nullptr)
      args.sums = static_cast<char*>(args.partials) + walk.partials * partials.itemsize();
    launch_normalization_sums(type, args, launch);
  }
  if (call.gx != nullptr) launch_normalization_gradient(type, args, launch);
  check_launch("batch_normalization_grad");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, normalization) {
  kernels::batch_normalization.provide<&gpu::batch_normalization>(DeviceType::kCuda, "cuda");
  kernels::fixed_batch_normalization.provide<&gpu::fixed_batch_normalization>(DeviceType::kCuda,
                                                                              "cuda");
  kernels::batch_normalization_grad.provide<&gpu::batch_normalization_grad>(DeviceType::kCuda,
                                                                            "cuda");
  kernels::batch_moments.provide<&gpu::batch_moments>(DeviceType::kCuda, "cuda");
  kernels::merge_moments.provide<&gpu::merge_moments>(DeviceType::kCuda, "cuda");
}
