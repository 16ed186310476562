// The forward pass and the gradient of x of small convolutions. A block keeps planes of an image
// and their weights in shared memory; a thread multiplies them for 4 planes and 4 columns of the
// result in registers. Sums over shares of the input planes are added in a fixed order.
#include "backends/cuda/convolution/small.h"
#include "backends/cuda/convolution/small_planes.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

// What a thread computes: numbers within the block's slice.
struct SumPlace {
  int pack, group, part, row;
};

// Threads of a warp have the same row or adjacent ones, which see the same rows of the window.
__device__ inline SumPlace place_of_thread(const SmallSumsPlan& plan) {
  int rest = int(threadIdx.x);
  SumPlace place;
  place.pack = rest % plan.packs, rest /= plan.packs;
  place.group = rest % plan.groups, rest /= plan.groups;
  place.part = rest % plan.parts;
  place.row = rest / plan.parts;
  return place;
}

// Weights of `inputs` input planes from `first_input` on as [input plane][r][s][plane of the
// slice]; zeros for planes that are not there.
__device__ void copy_weights(const SmallSumsArgs& a, int first_plane, int first_input, int inputs,
                             float* to) {
  const SmallSums& z = a.problem;
  const int planes = a.plan.slice_planes, taps = z.kernel[0] * z.kernel[1];
  const int plane = int(threadIdx.x) % planes, step = int(blockDim.x) / planes;
  const bool there = first_plane + plane < z.to_planes;
  const float* const from = a.weights + int64_t(there ? first_plane + plane : 0) * z.to_step +
                            int64_t(first_input) * z.from_step;
  const int step_input = step / taps, step_tap = step % taps, count = inputs * taps;
  int at = int(threadIdx.x) / planes;
  int input = at / taps, tap = at % taps;
  for (; at < count; at += kLoads * step) {
    float values[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (at + i * step >= count) break;
      values[i] = from[input * z.from_step + (z.flipped ? taps - 1 - tap : tap)];
      input += step_input, tap += step_tap;
      if (tap >= taps) tap -= taps, ++input;
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (at + i * step >= count) break;
      to[(at + i * step) * planes + plane] = there ? values[i] : 0;
    }
  }
}

// sums[k][j] += the products of one row of the window with the row `line` of an input plane.
// `step` is the distance of the weights of adjacent columns.
template <int kSpan, bool kExact>
__device__ inline void add_window_row(float (&sums)[kSmallFilters][kSmallColumns],
                                      const float* line, const float* weights, int step,
                                      int width) {
  float window[kColumnsAhead<kSpan> + kSmallColumns];
#pragma unroll
  for (int i = 0; i < kColumnsAhead<kSpan> + kSmallColumns; i += kSmallColumns)
    load_pack(window + i, line + i);
#pragma unroll
  for (int s = 0; s < kSpan; ++s) {
    if (!kExact && s >= width) break;
    float w[kSmallFilters];
    load_pack(w, weights + s * step);
#pragma unroll
    for (int k = 0; k < kSmallFilters; ++k)
#pragma unroll
      for (int j = 0; j < kSmallColumns; ++j)
        sums[k][j] = __fmaf_rn(w[k], window[j + s], sums[k][j]);
  }
}

// Adds the shares of all parts and writes the slice. `shares` are [part][plane][row][column], the
// rows of whole packs.
__device__ void write_slice(const SmallSumsArgs& a, int image, int first_plane,
                            const float* shares) {
  const SmallSums& z = a.problem;
  const int columns = a.plan.packs * kSmallColumns, size = z.to[0] * columns;
  const int count = a.plan.slice_planes * size;
  for (int at = int(threadIdx.x); at < count; at += int(blockDim.x)) {
    const int x = at % columns, y = at / columns % z.to[0], plane = first_plane + at / size;
    if (x >= z.to[1] || plane >= z.to_planes) continue;
    float sum = shares[at];
    for (int part = 1; part < a.plan.parts; ++part) sum += shares[part * count + at];
    if (a.bias != nullptr) sum += a.bias[plane];
    float& target = a.to[((int64_t(image) * z.to_planes + plane) * z.to[0] + y) * z.to[1] + x];
    target = a.accumulate ? target + sum : sum;
  }
}

template <int kSpan, bool kExact>
__global__ void __launch_bounds__(kThreads, 3) small_sums_kernel(SmallSumsArgs a) {
  wait_for_previous_kernel();
  const SmallSums& z = a.problem;
  const SmallSumsPlan& plan = a.plan;
  const int size = z.from[0] * plan.pitch, planes = plan.slice_planes;
  const int first_plane = int(blockIdx.x) * planes, image = int(blockIdx.y);
  float* const tile = reinterpret_cast<float*>(dynamic_shared());
  float* const weights = tile + plan.piece * size;
  const SumPlace place = place_of_thread(plan);
  const bool works = place.row < z.to[0];
  // The rows of the window that meet the image, and the image's row that row 0 would meet.
  const int top = place.row - z.pad[0];
  const int first = greater(0, -top), end = lesser(z.kernel[0], z.from[0] - top);

  clear(tile, plan.piece * size);  // the places that no element is copied to stay zero
  float sums[kSmallFilters][kSmallColumns] = {};
  for (int input = 0; input < z.from_planes; input += plan.piece) {
    const int inputs = lesser(plan.piece, z.from_planes - input);
    __syncthreads();
    copy_planes(a.from + (int64_t(image) * z.from_planes + input) * z.from[0] * z.from[1], inputs,
                z.from[0], z.from[1], {tile, z.from[0], plan.pitch, 0, z.pad[1]});
    copy_weights(a, first_plane, input, inputs, weights);
    __syncthreads();
    if (!works) continue;
    for (int i = place.part; i < inputs; i += plan.parts)
#pragma unroll 1  // more at a time would take the registers of another block
      for (int r = first; r < end; ++r)
        add_window_row<kSpan, kExact>(
            sums, tile + i * size + (top + r) * plan.pitch + place.pack * kSmallColumns,
            weights + (i * z.kernel[0] + r) * z.kernel[1] * planes + place.group * kSmallFilters,
            planes, z.kernel[1]);
  }

  __syncthreads();
  if (works) {
    const int columns = plan.packs * kSmallColumns;
#pragma unroll
    for (int k = 0; k < kSmallFilters; ++k) {
      const int plane = place.part * planes + place.group * kSmallFilters + k;
      *reinterpret_cast<float4*>(tile + (plane * z.to[0] + place.row) * columns +
                                 place.pack * kSmallColumns) =
          float4{sums[k][0], sums[k][1], sums[k][2], sums[k][3]};
    }
  }
  __syncthreads();
  write_slice(a, image, first_plane, tile);
}

constexpr int64_t kPieceBytes = 40 << 10;  // so that several blocks fit

int64_t bytes_of_input(const SmallSums& z, const SmallSumsPlan& p) {
  return int64_t(sizeof(float)) *
         (z.from[0] * p.pitch + z.kernel[0] * z.kernel[1] * p.slice_planes);
}

}  // namespace

int64_t SmallSumsPlan::shared_bytes(const SmallSums& z) const {
  const int64_t inputs = piece * bytes_of_input(z, *this);
  const int64_t shares =
      int64_t(sizeof(float)) * parts * slice_planes * z.to[0] * packs * kSmallColumns;
  return inputs > shares ? inputs : shares;
}

SmallSums forward_sums(const SmallConvolution& z) {
  const int taps = z.kernel[0] * z.kernel[1];
  return {z.images,
          z.channels,
          z.filters,
          {z.height, z.width},
          {z.out[0], z.out[1]},
          {z.kernel[0], z.kernel[1]},
          {z.pad[0], z.pad[1]},
          z.channels * taps,
          taps,
          false};
}

SmallSums grad_x_sums(const SmallConvolution& z) {
  const int taps = z.kernel[0] * z.kernel[1];
  return {z.images,
          z.filters,
          z.channels,
          {z.out[0], z.out[1]},
          {z.height, z.width},
          {z.kernel[0], z.kernel[1]},
          {z.kernel[0] - 1 - z.pad[0], z.kernel[1] - 1 - z.pad[1]},
          taps,
          z.channels * taps,
          true};
}

bool has_small_planes(const SmallSums& z) {
  return int64_t(z.to[0]) * parts_of(z.to[1], kSmallColumns) <= kThreads;
}

SmallSumsPlan plan_small_sums(const SmallSums& z, int multiprocessors) {
  SmallSumsPlan p{};
  const int groups = parts_of(z.to_planes, kSmallFilters);
  p.packs = parts_of(z.to[1], kSmallColumns);
  // Two groups share the image, where there are blocks enough for all multiprocessors.
  const bool many = int64_t(z.images) * parts_of(groups, 2) >= 2 * multiprocessors;
  p.groups = groups > 1 && many && 2 * p.packs * z.to[0] <= kThreads ? 2 : 1;
  p.slice_planes = p.groups * kSmallFilters;
  p.slices = parts_of(groups, p.groups);
  const int most = kThreads / (p.groups * p.packs * z.to[0]);
  // The fewest parts that go through the input planes in as few rounds.
  p.parts = parts_of(z.from_planes, parts_of(z.from_planes, most));
  const int span = z.kernel[1] == 3 || z.kernel[1] == 5 ? z.kernel[1] : kWidestSmallWindow;
  p.pitch = pitch_for(z.to[1], span);
  const int fitting = int(kPieceBytes / bytes_of_input(z, p));
  p.piece = fitting > p.parts ? fitting / p.parts * p.parts : fitting > 1 ? fitting : 1;
  if (p.piece > z.from_planes) p.piece = z.from_planes;
  return p;
}

void launch_small_sums(const SmallSumsArgs& args, const Launch& launch) {
  const SmallSums& z = args.problem;
  const dim3 grid(unsigned(args.plan.slices), unsigned(z.images));
  const dim3 block(unsigned(args.plan.threads(z)));
  const size_t bytes = size_t(args.plan.shared_bytes(z));
  if (z.kernel[1] == 3)
    launch_with_shared<small_sums_kernel<3, true>>(grid, block, bytes, launch, args);
  else if (z.kernel[1] == 5)
    launch_with_shared<small_sums_kernel<5, true>>(grid, block, bytes, launch, args);
  else
    launch_with_shared<small_sums_kernel<kWidestSmallWindow, false>>(grid, block, bytes, launch,
                                                                     args);
}

}  // namespace catena::gpu
