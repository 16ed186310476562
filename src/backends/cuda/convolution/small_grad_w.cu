// The gradient of the weights of small convolutions. A block keeps an image and its gy in shared
// memory; a thread sums the products of its weights over the positions in registers. The sums of
// blocks are written side by side and added in a fixed order, so results repeat bit for bit.
#include "backends/cuda/convolution/small.h"
#include "backends/cuda/convolution/small_planes.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

// The weights of a thread: filters from `filter` on, and row `row` of the window of `channel`.
// Numbers within the block's slice.
struct WeightPlace {
  int row, channel, filter, part;
};

__device__ inline WeightPlace place_of_thread(const SmallGradWArgs& a) {
  int rest = int(threadIdx.x);
  WeightPlace place;
  place.row = rest % a.problem.kernel[0], rest /= a.problem.kernel[0];
  place.channel = rest % a.plan.tile_channels, rest /= a.plan.tile_channels;
  place.filter = rest % a.plan.filter_groups * kSmallFilters;
  place.part = rest / a.plan.filter_groups;
  return place;
}

// sums[k][s] += the products of one row of gy with the row of the image that the weights see.
// `line` is that row of the image, `gy` the row of the first filter, `plane` the distance to the
// next filter's.
template <int kSpan>
__device__ void add_row(float (&sums)[kSmallFilters][kSpan], const float* line, const float* gy,
                        int plane, int columns) {
  constexpr int kAhead = kColumnsAhead<kSpan>;
  float window[kAhead + kSmallColumns];
#pragma unroll
  for (int i = 0; i < kAhead; i += kSmallColumns) load_pack(window + i, line + i);
  int x = 0;
  for (; x + kSmallColumns <= columns; x += kSmallColumns) {
    load_pack(window + kAhead, line + x + kAhead);
#pragma unroll
    for (int k = 0; k < kSmallFilters; ++k) {
      float g[kSmallColumns];
      load_pack(g, gy + k * plane + x);
#pragma unroll
      for (int j = 0; j < kSmallColumns; ++j)
#pragma unroll
        for (int s = 0; s < kSpan; ++s) sums[k][s] = __fmaf_rn(g[j], window[j + s], sums[k][s]);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) window[i] = window[i + kSmallColumns];
  }
  for (; x < columns; ++x)
#pragma unroll
    for (int k = 0; k < kSmallFilters; ++k)
#pragma unroll
      for (int s = 0; s < kSpan; ++s)
        sums[k][s] = __fmaf_rn(gy[k * plane + x], line[x + s], sums[k][s]);
}

template <int kSpan>
__global__ void __launch_bounds__(kThreads, 2) small_grad_w_kernel(SmallGradWArgs a) {
  wait_for_previous_kernel();
  const SmallConvolution& z = a.problem;
  const SmallGradWPlan& plan = a.plan;
  const int image_size = plan.image_rows * plan.image_pitch, plane = z.out[0] * plan.gy_pitch;
  float* const image = reinterpret_cast<float*>(dynamic_shared());
  float* const gy = image + plan.tile_channels * image_size;
  const int slice_filters = plan.filter_groups * kSmallFilters;
  const int first_filter = int(blockIdx.x) % plan.filter_slices * slice_filters;
  const int first_channel = int(blockIdx.x) / plan.filter_slices * plan.tile_channels;
  const int filters = lesser(slice_filters, z.filters - first_filter);
  const int channels = lesser(plan.tile_channels, z.channels - first_channel);
  const WeightPlace place = place_of_thread(a);
  const bool works =
      place.part < plan.row_parts && place.channel < channels && place.filter < filters;
  const int first_row = place.part * plan.rows, end_row = lesser(first_row + plan.rows, z.out[0]);
  const int first_image = int(blockIdx.y) * plan.block_images;
  const int end_image = lesser(first_image + plan.block_images, z.images);

  // The places that no element is copied to stay zero: padding, and filters that are not there.
  clear(image, plan.tile_channels * image_size + slice_filters * plane);
  float sums[kSmallFilters][kSpan] = {};
  for (int n = first_image; n < end_image; ++n) {
    __syncthreads();
    copy_planes(a.x + (int64_t(n) * z.channels + first_channel) * z.height * z.width, channels,
                z.height, z.width, {image, plan.image_rows, plan.image_pitch, z.pad[0], z.pad[1]});
    copy_planes(a.gy + (int64_t(n) * z.filters + first_filter) * z.out[0] * z.out[1], filters,
                z.out[0], z.out[1], {gy, z.out[0], plan.gy_pitch, 0, 0});
    __syncthreads();
    if (!works) continue;
    for (int y = first_row; y < end_row; ++y)
      add_row<kSpan>(sums, image + place.channel * image_size + (y + place.row) * plan.image_pitch,
                     gy + place.filter * plane + y * plan.gy_pitch, plane, z.out[1]);
  }
  if (!works) return;
  const int64_t sum = int64_t(blockIdx.y) * plan.row_parts + place.part;
#pragma unroll
  for (int k = 0; k < kSmallFilters; ++k) {
    if (place.filter + k >= filters) break;
    const int64_t filter = sum * z.filters + first_filter + place.filter + k;
    const int64_t row =
        (filter * z.channels + first_channel + place.channel) * z.kernel[0] + place.row;
#pragma unroll
    for (int s = 0; s < kSpan; ++s)
      if (s < z.kernel[1]) a.partials[row * z.kernel[1] + s] = sums[k][s];
  }
}

constexpr int kWeightsOfBlock = 8, kLanes = kThreads / kWeightsOfBlock;

// Adds the partial sums of each weight: kLanes threads every kLanes-th of them, then their sums.
__global__ void __launch_bounds__(kThreads)
    add_partial_sums_kernel(const float* partials, float* to, int weights, int count,
                            bool accumulate) {
  wait_for_previous_kernel();
  __shared__ float sums[kLanes][kWeightsOfBlock];
  const int column = int(threadIdx.x) % kWeightsOfBlock, lane = int(threadIdx.x) / kWeightsOfBlock;
  const int weight = int(blockIdx.x) * kWeightsOfBlock + column;
  float sum = 0;
  if (weight < weights) {
#pragma unroll 8
    for (int i = lane; i < count; i += kLanes) sum += partials[int64_t(i) * weights + weight];
  }
  sums[lane][column] = sum;
  __syncthreads();
  if (lane > 0 || weight >= weights) return;
  for (int i = 1; i < kLanes; ++i) sum += sums[i][column];
  to[weight] = accumulate ? to[weight] + sum : sum;
}

// Shared memory of a block: in all 48 KiB, which every GPU has. A channel of the largest image and
// a group of filters of the largest gy fit.
constexpr int kImageFloats = 7 << 10, kGyFloats = 5 << 10;

}  // namespace

SmallGradWPlan plan_small_grad_w(const SmallConvolution& z, int multiprocessors) {
  SmallGradWPlan p{};
  p.image_rows = z.out[0] + z.kernel[0] - 1;
  p.image_pitch = pitch_for(z.out[1], compiled_width(z.kernel[1]));
  p.gy_pitch = multiple_of_4(z.out[1]);
  // Channels of about half of the threads, so that two groups of filters share the image.
  const int by_threads = parts_of(z.channels * z.kernel[0], kThreads / 2),
            by_memory = parts_of(z.channels, kImageFloats / (p.image_rows * p.image_pitch));
  p.tile_channels = parts_of(z.channels, by_threads > by_memory ? by_threads : by_memory);
  p.channel_slices = parts_of(z.channels, p.tile_channels);
  const int of_group = p.tile_channels * z.kernel[0], groups = parts_of(z.filters, kSmallFilters);
  const int by_groups = parts_of(groups, kThreads / of_group),
            by_gy = parts_of(groups, kGyFloats / (kSmallFilters * z.out[0] * p.gy_pitch));
  p.filter_groups = parts_of(groups, by_groups > by_gy ? by_groups : by_gy);
  p.filter_slices = parts_of(groups, p.filter_groups);
  const int parts = kThreads / (of_group * p.filter_groups);
  p.rows = parts_of(z.out[0], parts < z.out[0] ? parts : z.out[0]);
  p.row_parts = parts_of(z.out[0], p.rows);
  // Three blocks for each multiprocessor hide the loads of images; more would only make more
  // partial sums.
  const int slices = parts_of(3 * multiprocessors, p.filter_slices * p.channel_slices);
  p.block_images = parts_of(z.images, slices < z.images ? slices : z.images);
  p.image_slices = parts_of(z.images, p.block_images);
  return p;
}

void launch_small_grad_w(const SmallGradWArgs& args, const Launch& launch) {
  const SmallConvolution& z = args.problem;
  const SmallGradWPlan& p = args.plan;
  const dim3 grid(unsigned(p.filter_slices * p.channel_slices), unsigned(p.image_slices));
  const dim3 block(unsigned(p.threads(z)));
  const size_t bytes = size_t(p.shared_bytes(z));
  const int width = compiled_width(z.kernel[1]);
  if (width == 3)
    launch_with_shared<small_grad_w_kernel<3>>(grid, block, bytes, launch, args);
  else if (width == 5)
    launch_with_shared<small_grad_w_kernel<5>>(grid, block, bytes, launch, args);
  else
    launch_with_shared<small_grad_w_kernel<7>>(grid, block, bytes, launch, args);
  const int weights = z.filters * z.channels * z.kernel[0] * z.kernel[1];
  launch_kernel<add_partial_sums_kernel>(dim3(unsigned(parts_of(weights, kWeightsOfBlock))),
                                         dim3(kThreads), launch,
                                         static_cast<const float*>(args.partials), args.gW, weights,
                                         p.partial_sums(), args.accumulate);
}

}  // namespace catena::gpu
