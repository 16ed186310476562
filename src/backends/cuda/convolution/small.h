// Convolutions of small images with few channels in float32: plain arguments. The kernels keep
// images in shared memory and multiply them with the windows in place, without patches.
// catena/kernels/convolution.h defines the results.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// Stride 1, no dilation, one group; all arrays contiguous with channels first. `out` are the
// extents of y.
struct SmallConvolution {
  int images, channels, filters;
  int height, width, out[2], kernel[2], pad[2];
};

// Filters and columns that a thread computes together.
constexpr int kSmallFilters = 4, kSmallColumns = 4;

constexpr int parts_of(int count, int size) { return (count + size - 1) / size; }
constexpr int multiple_of_4(int count) { return (count + 3) / 4 * 4; }

// The windows' widths that the kernels are compiled for; a window takes the next one.
constexpr int compiled_width(int width) { return width <= 3 ? 3 : width <= 5 ? 5 : 7; }
constexpr int kWidestSmallWindow = 7, kLargestSmallImage = 32;

// The pitch of rows of which threads read `columns` columns and those that a window of `span`
// columns at the last one still covers. An odd number of packs of 16 bytes: adjacent rows lie in
// different banks.
constexpr int pitch_for(int columns, int span) {
  const int packs = (multiple_of_4(columns) + multiple_of_4(span - 1)) / kSmallColumns;
  return (packs | 1) * kSmallColumns;
}

// How the gradient of W is shared out. A block takes a slice of the filters and of the channels,
// and the sums of a range of images. A thread has the weights (4 filters, a channel, a row of the
// window) and sums over some rows of the results.
struct SmallGradWPlan {
  int tile_channels, filter_groups;  // of a block; a group is kSmallFilters filters
  int row_parts, rows;               // shares of the rows of gy, and the rows of one
  int block_images;                  // of a block
  int channel_slices, filter_slices, image_slices;
  int image_rows, image_pitch, gy_pitch;  // in shared memory

  int threads(const SmallConvolution& z) const {
    const int busy = row_parts * filter_groups * tile_channels * z.kernel[0];
    return parts_of(busy, 32) * 32;
  }
  int64_t shared_bytes(const SmallConvolution& z) const {
    return int64_t(sizeof(float)) * (int64_t(tile_channels) * image_rows * image_pitch +
                                     int64_t(filter_groups) * kSmallFilters * z.out[0] * gy_pitch);
  }
  // Partial sums of all weights, which a second kernel adds in their order.
  int partial_sums() const { return image_slices * row_parts; }
};

struct SmallGradWArgs {
  const float *x, *gy;
  float *gW, *partials;
  SmallConvolution problem;
  SmallGradWPlan plan;
  bool accumulate;
};

// For windows of at most kWidestSmallWindow rows and columns, and images and gy of at most
// kLargestSmallImage.
SmallGradWPlan plan_small_grad_w(const SmallConvolution& z, int multiprocessors);
// `partials` has room for plan.partial_sums() times all weights.
void launch_small_grad_w(const SmallGradWArgs& args, const Launch& launch);

// Sums of products over input planes, the forward pass and the gradient of x:
//   to[n, o, y, x] (+)= bias[o] + sum of from[n, i, y + r - pad, x + s - pad] * w(o, i, r, s)
// over the elements of `from` that there are.
struct SmallSums {
  int images, from_planes, to_planes;
  int from[2], to[2], kernel[2];  // extents
  int pad[2];                     // of either sign
  // w(o, i, r, s) is the weight o * to_step + i * from_step + (r, s), read backwards if `flipped`.
  int to_step, from_step;
  bool flipped;
};
SmallSums forward_sums(const SmallConvolution& z);
SmallSums grad_x_sums(const SmallConvolution& z);

// How the sums are shared out. A block takes an image and a slice of the planes that it writes; a
// thread 4 of these planes, 4 adjacent columns and every parts-th input plane. Input planes come
// into shared memory a piece at a time.
struct SmallSumsPlan {
  int groups;        // of kSmallFilters planes, in a slice
  int slice_planes;  // groups * kSmallFilters
  int packs;         // of kSmallColumns columns, in a row
  int parts, piece, slices;
  int pitch;  // of input rows in shared memory

  int threads(const SmallSums& z) const {
    return parts_of(groups * packs * parts * z.to[0], 32) * 32;
  }
  int64_t shared_bytes(const SmallSums& z) const;
};

struct SmallSumsArgs {
  const float *from, *weights, *bias;  // bias: may be null
  float* to;
  SmallSums problem;
  SmallSumsPlan plan;
  bool accumulate;
};

// The extents of `to` such that a block has threads for all of its positions.
bool has_small_planes(const SmallSums& z);
// Where has_small_planes(), for windows of at most kWidestSmallWindow columns.
SmallSumsPlan plan_small_sums(const SmallSums& z, int multiprocessors);
void launch_small_sums(const SmallSumsArgs& args, const Launch& launch);

}  // namespace catena::gpu
