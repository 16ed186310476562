// Host glue of the slots of row normalization.
#include "backends/cuda/normalization/row_normalization.h"

#include "backends/common/family.h"
#include "backends/cuda/normalization/normalization.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/row_normalization.h"

namespace catena::gpu {
namespace {

bool is_narrow(const Array* parameter, const Array* x) {
  return parameter != nullptr && parameter->dtype() == x->dtype();
}
RowParameter parameter_of(const Array* parameter, const Array* x) {
  return {data_of(parameter), is_narrow(parameter, x)};
}
RowParameterGradient gradient_of(const Array* gradient, const Array* x, bool accumulate) {
  return {data_of(gradient), is_narrow(gradient, x), accumulate};
}

template <class Call>
RowNormalizationArgs arguments(const Call& call, const Launch& launch) {
  const auto& [samples, positions, channels, inner, groups] = call.layout;
  RowNormalizationArgs args{samples, positions, channels, inner, groups};
  args.centred = call.centred;
  args.x = call.x->raw_data();
  args.gamma = parameter_of(call.gamma, call.x);
  args.statistics = call.statistics->raw_data();
  args.shared_memory = device_info(launch.device).max_shared_memory;
  return args;
}

// Decides on the parts of a row, and returns their scratch.
Array divide(Float type, RowNormalizationArgs& args, const Array& x, const Launch& launch) {
  args.parts = args.has_sum() ? 1 : row_parts(type, args, launch);
  if (args.parts == 1) return {};
  const Array partials = scratch_for(x, 4 * args.samples * args.groups * args.parts);
  args.partials = partials.raw_data();
  return partials;
}

void row_normalization(const RowNormalizationCall& call) {
  const Float type = float_code("row_normalization", call.x->dtype());
  const Launch launch = launch_for(*call.x);
  RowNormalizationArgs args = arguments(call, launch);
  args.eps = call.eps;
  args.beta = parameter_of(call.beta, call.x);
  args.y = call.y->raw_data();
  args.residual = data_of(call.residual);
  args.sum = data_of(call.sum);
  args.aligned = aligned16(args.x, args.gamma.data, args.beta.data, args.y) &&
                 aligned16(args.residual, args.sum);
  if (!launch_cluster_rows(type, args, launch)) {
    const Array partials = divide(type, args, *call.x, launch);
    launch_row_normalization(type, args, launch);
  }
  check_launch("row_normalization");
}

void find_parameters(Float type, const RowNormalizationGradCall& call, const Launch& launch) {
  const RowLayout& l = call.layout;
  RowParameterArgs args{
      l.samples * l.positions, l.channels, l.inner, l.positions, l.groups, l.rows()};
  args.centred = call.centred;
  args.x = call.x->raw_data();
  args.gy = call.gy->raw_data();
  args.aligned = aligned16(args.x, args.gy);
  args.statistics = call.statistics->raw_data();
  args.gamma = gradient_of(call.g_gamma, call.x, call.accumulate_gamma);
  args.beta = gradient_of(call.g_beta, call.x, call.accumulate_beta);
  const NormalizationWalk walk =
      normalization_walk(type, args.outer, args.channels, args.inner, args.aligned, launch);
  const Array partials = scratch_for(*call.x, walk.partials);
  args.splits = walk.splits;
  args.partials = partials.raw_data();
  launch_row_parameters(type, args, launch);
}

// Scratch of the gradients of gamma and beta where that of x makes them on its way; calls
// launch(sums). Without those two it gets none, unless it is `needed`.
template <class F>
void find_all(const RowNormalizationGradCall& call, int64_t numbers, bool needed, F launch) {
  RowParameterSums sums{gradient_of(call.g_gamma, call.x, call.accumulate_gamma),
                        gradient_of(call.g_beta, call.x, call.accumulate_beta), nullptr};
  Array partials;
  if (needed || call.g_gamma != nullptr || call.g_beta != nullptr) {
    partials = scratch_for(*call.x, numbers);
    sums.partials = partials.raw_data();
  }
  launch(sums);
}

// gx alone, then the gradients of gamma and beta.
void find_apart(Float type, const RowNormalizationGradCall& call, RowNormalizationArgs& args,
                const Launch& launch) {
  if (call.gx != nullptr) {
    const Array partials = divide(type, args, *call.x, launch);
    launch_row_gradient(type, args, launch);
  }
  if (call.g_gamma != nullptr || call.g_beta != nullptr) find_parameters(type, call, launch);
}

void row_normalization_grad(const RowNormalizationGradCall& call) {
  const Float type = float_code("row_normalization_grad", call.x->dtype());
  const Launch launch = launch_for(*call.x);
  RowNormalizationArgs args = arguments(call, launch);
  args.gy = call.gy->raw_data();
  args.y = data_of(call.gx);
  args.gsum = data_of(call.gsum);
  args.aligned = aligned16(args.x, args.gy, args.gamma.data, args.y, args.gsum);
  args.parts = call.gx && !args.has_sum() ? row_parts(type, args, launch) : 1;
  const int64_t samples_channels = 2 * args.samples * args.channels,
                of_clusters = cluster_gradient_partials(type, args, launch);
  if (of_clusters > 0) {
    find_all(call, of_clusters, false,
             [&](const auto& sums) { launch_cluster_gradient(type, args, sums, launch); });
  } else if (has_plain_gradient(type, args)) {
    find_all(call, plain_gradient_partials(args, launch), false,
             [&](const auto& sums) { launch_plain_gradient(type, args, sums, launch); });
  } else if (call.gx == nullptr || args.has_sum()) {
    find_apart(type, call, args, launch);
  } else if (has_kept_gradient(type, args, launch)) {
    find_all(call, samples_channels, false,
             [&](const auto& sums) { launch_kept_gradient(type, args, sums, launch); });
  } else if (has_strip_gradient(type, args, launch)) {
    find_all(call, samples_channels, false,
             [&](const auto& sums) { launch_strip_gradient(type, args, sums, launch); });
  } else if (has_line_gradient(type, args)) {
    find_all(call, line_gradient_partials(type, args, launch), true,
             [&](const auto& sums) { launch_line_gradient(type, args, sums, launch); });
  } else {
    find_apart(type, call, args, launch);
  }
  check_launch("row_normalization_grad");
}

}  // namespace
}  // namespace catena::gpu

CATENA_FAMILY(cuda, row_normalization) {
  kernels::row_normalization.provide<&gpu::row_normalization>(DeviceType::kCuda, "cuda");
  kernels::row_normalization_grad.provide<&gpu::row_normalization_grad>(DeviceType::kCuda, "cuda");
}
