// Local response normalization. A block takes a tile of channels by positions: it loads x, with the
// channels that windows of the tile reach, into shared memory once, so that memory is read and
// written once. Windows that are too wide for that are summed from global memory.
#include "backends/cuda/normalization/local_response.h"

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kWidestHalf = 8;  // of windows in shared memory

__device__ inline float root(float v) { return sqrtf(v); }
__device__ inline double root(double v) { return sqrt(v); }
__device__ inline float power(float v, float e) { return powf(v, e); }
__device__ inline double power(double v, double e) { return pow(v, e); }

// scale^-beta.
template <class C>
__device__ C inverse_power(C scale, C beta) {
  if (beta != C(0.75)) return power(scale, -beta);
  const C r = root(scale);
  return C(1) / (r * root(r));
}

// The shape of a tile. The lanes of a warp are adjacent in memory: along the positions of a sample,
// or along the channels where these are the last axis.
struct Tile {
  bool last;     // channels
  int channels;  // without those that windows reach beside it
  int positions;

  explicit Tile(int64_t inner)
      : last(inner < 8), channels(last ? 128 : 32), positions(last ? kWarps : 32) {}
};
// Numbers of a tile with what windows reach in two steps on both sides.
constexpr int kMostNumbers = 2048;
static_assert((32 + 4 * kWidestHalf) * 32 <= kMostNumbers);
static_assert((128 + 4 * kWidestHalf) * kWarps <= kMostNumbers);

// What a thread has of its block's tile: one position, and every step-th channel.
struct Place {
  int64_t first;       // of the position's channel 0 in the array
  int64_t begin, end;  // channels of the tile
  int start, step, stride, column;
  bool active;

  __device__ Place(const LocalResponseArgs& args, const Tile& tile, int64_t chunks) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t chunk = blockIdx.x % chunks, strip = blockIdx.x / chunks;
    const int64_t position = strip * tile.positions + (tile.last ? warp : lane);
    active = position < args.outer * args.inner;
    first = position / args.inner * args.channels * args.inner + position % args.inner;
    begin = chunk * tile.channels;
    end = begin + tile.channels < args.channels ? begin + tile.channels : args.channels;
    start = tile.last ? lane : warp;
    step = tile.last ? 32 : kWarps;
    stride = tile.last ? 1 : 32;
    column = tile.last ? warp * (kMostNumbers / kWarps) : lane;
  }
  // Where shared memory has channel c, `reach` being what it has in front of the tile.
  __device__ int at(int64_t c, int reach) const { return int(c - begin + reach) * stride + column; }
  // Calls f(c) for the thread's channels of the tile and `reach` more on both sides. Those that do
  // not exist are included.
  template <class F>
  __device__ void each(int reach, F f) const {
    if (!active) return;
    for (int64_t c = begin - reach + start; c < end + reach; c += step) f(c);
  }
};

template <class C>
__device__ C window_sum(const C* numbers, int at, int half, int stride) {
  C sum = C(0);
  for (int d = -half; d <= half; ++d) sum += numbers[at + d * stride];
  return sum;
}

template <class T, bool kGrad>
__global__ void __launch_bounds__(kThreads)
    tile_kernel(LocalResponseArgs args, Tile tile, int64_t chunks) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ C squares[kMostNumbers];
  __shared__ C terms[kGrad ? kMostNumbers : 1];
  const T *x = static_cast<const T*>(args.x), *gy = static_cast<const T*>(args.gy);
  T* y = static_cast<T*>(args.y);
  const int half = int(args.half), reach = kGrad ? 2 * half : half;
  const C k = C(args.k), alpha = C(args.alpha), beta = C(args.beta);
  const Place place(args, tile, chunks);
  const auto exists = [&](int64_t c) { return c >= 0 && c < args.channels; };
  const auto index = [&](int64_t c) { return place.first + c * args.inner; };
  const auto scale = [&](int64_t c) {
    return k + alpha * window_sum(squares, place.at(c, reach), half, place.stride);
  };
  place.each(reach, [&](int64_t c) {
    const C v = exists(c) ? widen(x[index(c)]) : C(0);
    squares[place.at(c, reach)] = v * v;
  });
  __syncthreads();
  if constexpr (!kGrad) {
    place.each(0, [&](int64_t c) {
      y[index(c)] = Narrow<T>::from(widen(x[index(c)]) * inverse_power(scale(c), beta));
    });
  } else {
    place.each(half, [&](int64_t c) {
      C term = C(0);
      if (exists(c)) {
        const C s = scale(c);
        term = widen(x[index(c)]) * (widen(gy[index(c)]) * inverse_power(s, beta) / s);
      }
      terms[place.at(c, reach)] = term;
    });
    __syncthreads();
    const C factor = C(-2 * args.alpha * args.beta);
    place.each(0, [&](int64_t c) {
      const C sum = window_sum(terms, place.at(c, reach), half, place.stride);
      const C direct = widen(gy[index(c)]) * inverse_power(scale(c), beta);
      y[index(c)] = Narrow<T>::from(direct + factor * widen(x[index(c)]) * sum);
    });
  }
}

// Wide windows: a thread for each element.

// The first and last channel of a window.
struct Range {
  int64_t channel, first, last;
  __device__ Range(const LocalResponseArgs& args, int64_t i) {
    channel = i / args.inner % args.channels;
    first = channel < args.half ? 0 : channel - args.half;
    last = channel + args.half < args.channels ? channel + args.half : args.channels - 1;
  }
};

// Calls f(i) for the elements of the batch.
template <class F>
__device__ void each_element(const LocalResponseArgs& args, F f) {
  const int64_t size = args.outer * args.channels * args.inner;
  const int64_t step = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < size; i += step) f(i);
}

// y, or the scale if it is wanted.
template <class T>
__global__ void __launch_bounds__(kThreads) wide_kernel(LocalResponseArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const T* x = static_cast<const T*>(args.x);
  each_element(args, [&](int64_t i) {
    const Range range(args, i);
    C sum = C(0);
    for (int64_t c = range.first; c <= range.last; ++c) {
      const C v = widen(x[i + (c - range.channel) * args.inner]);
      sum += v * v;
    }
    const C scale = C(args.k) + C(args.alpha) * sum;
    if (args.scale)
      static_cast<C*>(args.scale)[i] = scale;
    else
      static_cast<T*>(args.y)[i] =
          Narrow<T>::from(widen(x[i]) * inverse_power(scale, C(args.beta)));
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads) wide_grad_kernel(LocalResponseArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const T *x = static_cast<const T*>(args.x), *gy = static_cast<const T*>(args.gy);
  const C* scale = static_cast<const C*>(args.scale);
  const C beta = C(args.beta), factor = C(-2 * args.alpha * args.beta);
  each_element(args, [&](int64_t i) {
    const Range range(args, i);
    C sum = C(0);
    for (int64_t c = range.first; c <= range.last; ++c) {
      const int64_t at = i + (c - range.channel) * args.inner;
      sum += widen(x[at]) * (widen(gy[at]) * inverse_power(scale[at], beta) / scale[at]);
    }
    const C direct = widen(gy[i]) * inverse_power(scale[i], beta);
    static_cast<T*>(args.y)[i] = Narrow<T>::from(direct + factor * widen(x[i]) * sum);
  });
}

template <class T, bool kGrad>
void launch_tiles(const LocalResponseArgs& args, const Launch& launch) {
  const Tile tile(args.inner);
  const int64_t chunks = (args.channels + tile.channels - 1) / tile.channels;
  const int64_t strips = (args.outer * args.inner + tile.positions - 1) / tile.positions;
  launch_kernel<tile_kernel<T, kGrad>>(unsigned(chunks * strips), kThreads, launch, args, tile,
                                       chunks);
}

unsigned element_blocks(const LocalResponseArgs& args, const Launch& launch) {
  return loop_blocks(args.outer * args.channels * args.inner, kThreads, launch);
}

}  // namespace

bool local_response_needs_scale(int64_t half) { return half > kWidestHalf; }

void launch_local_response(Float type, const LocalResponseArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    if (args.half <= kWidestHalf)
      launch_tiles<T, false>(args, launch);
    else
      launch_kernel<wide_kernel<T>>(element_blocks(args, launch), kThreads, launch, args);
  })
}

void launch_local_response_grad(Float type, const LocalResponseArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    if (args.half <= kWidestHalf) {
      launch_tiles<T, true>(args, launch);
    } else {
      launch_kernel<wide_kernel<T>>(element_blocks(args, launch), kThreads, launch, args);
      launch_kernel<wide_grad_kernel<T>>(element_blocks(args, launch), kThreads, launch, args);
    }
  })
}

}  // namespace catena::gpu
