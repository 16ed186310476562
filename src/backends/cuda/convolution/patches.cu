// Copies have a thread for each pack of up to 16 bytes of the patches, in their order in memory.
// Sums have one for each element of the image: it gathers everything that contributes to the
// element, in a fixed order, so that no atomic additions are needed.
#include <algorithm>
#include <type_traits>

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/common/quotient.cuh"
#include "backends/cuda/convolution/patches.h"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

// Steps along axes with one element have no meaning, and say nothing about alignment.
PatchArgs without_idle_steps(PatchArgs a) {
  const int64_t extents[6] = {a.images, a.channels, a.kernel[0], a.kernel[1], a.out[0], a.out[1]};
  for (int k = 0; k < 6; ++k)
    if (extents[k] == 1) a.patches[k] = 0;
  for (int k = 0; k < 2; ++k) {
    if (extents[k] == 1) a.image[k] = 0;
    if (a.kernel[k] == 1) a.dilation[k] = 1;
    if (a.out[k] == 1) a.stride[k] = 0;
  }
  return a;
}

// An image with its channels last is one of a single channel, whose windows have a whole number of
// pixels: a line of a window is then one run of elements on both sides.
PatchArgs with_channels_in_lines(PatchArgs a) {
  const int64_t c = a.channels;
  const bool one_run = a.kernel[1] == 1 || (a.dilation[1] == 1 && a.patches[3] == c);
  if (c == 1 || a.image[1] != 1 || a.image[3] != c || a.patches[1] != 1 || !one_run) return a;
  a.width *= c, a.kernel[1] *= c, a.stride[1] *= c, a.pad[1] *= c;
  a.channels = a.dilation[1] = a.image[3] = a.patches[3] = 1;
  return a;
}

// The elements that every line of a window can be cut into, at addresses that are multiples of them
// on both sides: a power of 2, of 16 bytes at most.
int64_t pack_of(const PatchArgs& a, int64_t itemsize) {
  const int64_t most = 16 / itemsize;
  if (a.image[3] != 1 || a.dilation[1] != 1 || a.patches[3] != 1) return 1;
  const uint64_t elements = uint64_t(a.kernel[1] | a.stride[1] | a.pad[1] | a.width | a.image[0] |
                                     a.image[1] | a.image[2] | a.patches[0] | a.patches[1] |
                                     a.patches[2] | a.patches[4] | a.patches[5] | most),
                 addresses = reinterpret_cast<uintptr_t>(a.from) |
                             reinterpret_cast<uintptr_t>(a.to) | uintptr_t(most * itemsize);
  return int64_t(std::min(elements & -elements, (addresses & -addresses) / uint64_t(itemsize)));
}

int64_t patch_elements(const PatchArgs& a) {
  return a.images * a.channels * a.kernel[0] * a.kernel[1] * a.out[0] * a.out[1];
}

// Whether all offsets, and distances from the image, have less than 32 bits.
bool is_narrow(const PatchArgs& a) {
  const int64_t extents[2] = {a.height, a.width}, *p = a.patches, *i = a.image;
  int64_t last_patch = (a.images - 1) * p[0] + (a.channels - 1) * p[1],
          last_place = (a.images - 1) * i[0] + (a.channels - 1) * i[1];
  bool narrow = patch_elements(a) <= INT32_MAX;
  for (int k = 0; k < 2; ++k) {
    last_patch += (a.kernel[k] - 1) * p[2 + k] + (a.out[k] - 1) * p[4 + k];
    last_place += (extents[k] - 1) * i[2 + k];
    narrow =
        narrow && a.pad[k] <= INT32_MAX && (a.out[k] - 1) * a.stride[k] + a.range(k) <= INT32_MAX;
  }
  return narrow && last_patch <= INT32_MAX && last_place <= INT32_MAX;
}

// The same with packs as elements.
PatchArgs in_packs(PatchArgs a, int64_t pack) {
  for (int64_t* n :
       {&a.kernel[1], &a.stride[1], &a.pad[1], &a.width, &a.image[0], &a.image[1], &a.image[2],
        &a.patches[0], &a.patches[1], &a.patches[2], &a.patches[4], &a.patches[5]})
    *n /= pack;
  return a;
}

// A step along an axis of the patches: how far it leads there, in the image, and down and to the
// right in the image. As unsigned numbers, distances to what is left of the image or above it are
// larger than the image.
template <class Index>
struct Axis {
  Quotient<Index> extent{1};
  Index patches, image, down, right;
};
template <class Index>
struct Walk {
  Axis<Index> axis[6];  // in the order of the patches in memory, the last one innermost
  Index origin, top, left, height, width, count;
};

template <class Index>
Walk<Index> walk_of(const PatchArgs& a) {
  const int64_t *p = a.patches, *i = a.image, *s = a.stride, *d = a.dilation;
  const struct {
    int64_t extent, patches, image, down, right;
  } axes[6] = {{a.images, p[0], i[0], 0, 0},
               {a.channels, p[1], i[1], 0, 0},
               {a.kernel[0], p[2], d[0] * i[2], d[0], 0},
               {a.kernel[1], p[3], d[1] * i[3], 0, d[1]},
               {a.out[0], p[4], s[0] * i[2], s[0], 0},
               {a.out[1], p[5], s[1] * i[3], 0, s[1]}};
  int order[6] = {0, 1, 2, 3, 4, 5};
  const auto outside = [&](int k) { return axes[k].extent == 1 ? INT64_MAX : axes[k].patches; };
  std::sort(order, order + 6, [&](int k, int l) { return outside(k) > outside(l); });
  Walk<Index> walk{};
  for (int k = 0; k < 6; ++k) {
    const auto& from = axes[order[k]];
    walk.axis[k] = {Quotient<Index>(from.extent), Index(from.patches), Index(from.image),
                    Index(from.down), Index(from.right)};
  }
  walk.top = Index(-a.pad[0]), walk.left = Index(-a.pad[1]);
  walk.origin = Index(-a.pad[0] * i[2] - a.pad[1] * i[3]);
  walk.height = Index(a.height), walk.width = Index(a.width);
  walk.count = Index(patch_elements(a));
  return walk;
}

template <class Word, class Index, bool kBack>
__global__ void __launch_bounds__(kThreads)
    patches_kernel(const Word* __restrict__ from, Word* __restrict__ to, Walk<Index> walk) {
  wait_for_previous_kernel();
  const Index step = Index(gridDim.x) * kThreads;
  for (Index at = Index(blockIdx.x) * kThreads + threadIdx.x; at < walk.count; at += step) {
    Index rest = at, patch = 0, place = walk.origin, row = walk.top, column = walk.left;
#pragma unroll
    for (int k = 5; k >= 0; --k) {
      const Axis<Index>& axis = walk.axis[k];
      const Index n = k == 0 ? rest : axis.extent.split(rest);
      patch += n * axis.patches, place += n * axis.image;
      row += n * axis.down, column += n * axis.right;
    }
    using Distance = std::make_unsigned_t<Index>;
    const bool inside =
        Distance(row) < Distance(walk.height) && Distance(column) < Distance(walk.width);
    if (!kBack)
      to[patch] = inside ? from[place] : Word{};
    else if (inside)
      to[place] = from[patch];
  }
}

// Removes the last coordinate from an index.
template <class Index>
__device__ Index take_off(Index& index, int64_t extent) {
  const Index coordinate = index % Index(extent);
  index /= Index(extent);
  return coordinate;
}

// The position that reads `place` at a tap, or -1.
__device__ inline int64_t position_of(int64_t place, int64_t stride, int64_t positions) {
  if (place < 0 || place % stride != 0) return -1;
  const int64_t position = place / stride;
  return position < positions ? position : -1;
}

template <class T, class Index, bool kLast>
__global__ void __launch_bounds__(kThreads)
    patch_sums_kernel(PatchArgs a, bool accumulate, Index count) {
  wait_for_previous_kernel();
  const T* const from = static_cast<const T*>(a.from);
  T* const to = static_cast<T*>(a.to);
  // Without dilation positions see an element at every stride-th tap alone.
  const int64_t steps[2] = {a.dilation[0] == 1 ? a.stride[0] : 1,
                            a.dilation[1] == 1 ? a.stride[1] : 1};
  const Index step = Index(gridDim.x) * kThreads;
  for (Index at = Index(blockIdx.x) * kThreads + threadIdx.x; at < count; at += step) {
    Index rest = at, c = 0;
    if (kLast) c = take_off(rest, a.channels);
    const Index w = take_off(rest, a.width), h = take_off(rest, a.height);
    if (!kLast) c = take_off(rest, a.channels);
    const int64_t n = rest;
    Compute<T> sum = 0;
    const int64_t top = int64_t(h) + a.pad[0], left = int64_t(w) + a.pad[1];
    for (int64_t i = top % steps[0]; i < a.kernel[0]; i += steps[0]) {
      const int64_t y = position_of(top - i * a.dilation[0], a.stride[0], a.out[0]);
      if (y < 0) continue;
      for (int64_t j = left % steps[1]; j < a.kernel[1]; j += steps[1]) {
        const int64_t x = position_of(left - j * a.dilation[1], a.stride[1], a.out[1]);
        if (x < 0) continue;
        sum += widen(from[n * a.patches[0] + c * a.patches[1] + i * a.patches[2] +
                          j * a.patches[3] + y * a.patches[4] + x * a.patches[5]]);
      }
    }
    T& target =
        to[n * a.image[0] + c * a.image[1] + int64_t(h) * a.image[2] + int64_t(w) * a.image[3]];
    if (accumulate) sum += widen(target);
    target = Narrow<T>::from(sum);
  }
}

template <class Word, class Index, bool kBack>
void run_copy(const PatchArgs& a, const Launch& launch) {
  const unsigned blocks = loop_blocks(patch_elements(a), kThreads, launch, 32);
  launch_kernel<patches_kernel<Word, Index, kBack>>(blocks, kThreads, launch,
                                                    static_cast<const Word*>(a.from),
                                                    static_cast<Word*>(a.to), walk_of<Index>(a));
}

template <class Word, bool kBack>
void run_copy_of(const PatchArgs& a, const Launch& launch) {
  is_narrow(a) ? run_copy<Word, uint32_t, kBack>(a, launch)
               : run_copy<Word, int64_t, kBack>(a, launch);
}

template <bool kBack>
void launch_copy(int64_t itemsize, const PatchArgs& args, const Launch& launch) {
  PatchArgs a = without_idle_steps(args);
  if (is_narrow(a)) a = with_channels_in_lines(a);  // no product of its numbers leaves 64 bits
  const int64_t pack = pack_of(a, itemsize);
  a = in_packs(a, pack);
  switch (pack * itemsize) {
    case 2: return run_copy_of<uint16_t, kBack>(a, launch);
    case 4: return run_copy_of<uint32_t, kBack>(a, launch);
    case 8: return run_copy_of<uint64_t, kBack>(a, launch);
    default: return run_copy_of<uint4, kBack>(a, launch);
  }
}

template <class T, class Index>
void run_sums(const PatchArgs& a, bool accumulate, Index count, const Launch& launch) {
  const unsigned blocks = loop_blocks(count, kThreads, launch, 32);
  if (a.channels > 1 && a.image[1] == 1)
    launch_kernel<patch_sums_kernel<T, Index, true>>(blocks, kThreads, launch, a, accumulate,
                                                     count);
  else
    launch_kernel<patch_sums_kernel<T, Index, false>>(blocks, kThreads, launch, a, accumulate,
                                                      count);
}

template <class T>
void run_sums_of(const PatchArgs& a, bool accumulate, const Launch& launch) {
  const int64_t count = a.images * a.channels * a.height * a.width;
  count < INT32_MAX / 2 ? run_sums<T>(a, accumulate, uint32_t(count), launch)
                        : run_sums<T>(a, accumulate, uint64_t(count), launch);
}

}  // namespace

void launch_patches(int64_t itemsize, const PatchArgs& args, const Launch& launch) {
  launch_copy<false>(itemsize, args, launch);
}

void launch_patches_back(int64_t itemsize, const PatchArgs& args, const Launch& launch) {
  launch_copy<true>(itemsize, args, launch);
}

void launch_patch_sums(Float type, const PatchArgs& args, bool accumulate, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, run_sums_of<T>(args, accumulate, launch))
}

}  // namespace catena::gpu
