// Rotary positions: a thread takes some pairs of a position, or numbers that are copied, of several
// heads, which have the same angles.
#include "backends/cuda/attention/rotary.h"

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kResident = 2048;  // threads that a multiprocessor should have

// Splits i into i / n, which is returned, and i % n.
__device__ inline int64_t divide(int64_t i, int64_t n, int64_t& rest) {
  const uint64_t both = uint64_t(i) | uint64_t(n);
  const int64_t quotient = both >> 32 ? i / n : int64_t(uint32_t(i) / uint32_t(n));
  rest = i - quotient * n;
  return quotient;
}

// Angles of float32 are made small in float64: their digits would be lost in float32.
__device__ inline void cos_sin(double angle, float& cos, float& sin) {
  constexpr double kTurn = 6.283185307179586477;
  const double turns = rint(angle * (1 / kTurn));
  sincosf(float(fma(-turns, kTurn, angle)), &sin, &cos);
}
__device__ inline void cos_sin(double angle, double& cos, double& sin) {
  sincos(angle, &sin, &cos);
}

// N numbers from a column on; `row`: where their row begins.
template <class T, int N>
__device__ Pack<T, N> load(const RotaryArray& a, int64_t row, int64_t column) {
  const T* from = static_cast<const T*>(a.data) + row + column * (N > 1 ? 1 : a.strides[3]);
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <class T, int N>
__device__ void store(const RotaryArray& a, int64_t row, int64_t column, const Pack<T, N>& pack) {
  T* to = static_cast<T*>(a.data) + row + column * (N > 1 ? 1 : a.strides[3]);
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}
__device__ inline int64_t row_of(const RotaryArray& a, int64_t b, int64_t h, int64_t i) {
  return b * a.strides[0] + h * a.strides[1] + i * a.strides[2];
}

// Turns a pair in place.
template <class T>
__device__ void turn(T& first, T& second, Compute<T> cos, Compute<T> sin) {
  const Compute<T> a = widen(first), b = widen(second);
  first = Narrow<T>::from(a * cos - b * sin);
  second = Narrow<T>::from(b * cos + a * sin);
}

// `split`: the heads are dealt out to so many threads.
template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    rotary_kernel(const __grid_constant__ RotaryArgs args, int split) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ double frequencies[kMostRotaryPairs];
  for (int j = threadIdx.x; j < args.pairs; j += kThreads) frequencies[j] = args.frequencies[j];
  __syncthreads();
  const int64_t packs = args.pairs / N, items = packs + args.rest / N;
  const int64_t count = items * args.positions * args.batch * split;
  const int64_t step = int64_t(gridDim.x) * kThreads;
  for (int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x; at < count; at += step) {
    int64_t item, i, b;
    const int64_t part = divide(divide(divide(at, items, item), args.positions, i), args.batch, b);
    const int64_t first_head = args.heads * part / split, end = args.heads * (part + 1) / split;
    if (item >= packs) {
      const int64_t column = 2 * int64_t(args.all_pairs) + (item - packs) * N;
      for (int64_t h = first_head; h < end; ++h)
        store(args.y, row_of(args.y, b, h, i), column,
              load<T, N>(args.x, row_of(args.x, b, h, i), column));
      continue;
    }
    const int64_t place =
        args.places ? args.places[b * args.place_strides[0] + i * args.place_strides[1]] : i;
    C cos[N], sin[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      cos_sin(double(place + args.start) * frequencies[item * N + k], cos[k], sin[k]);
      cos[k] *= C(args.cos_factor);
      sin[k] *= C(args.sin_factor);
    }
    const int64_t pair = args.first_pair + item * N;
    const int64_t first = args.interleaved ? 2 * pair : pair;
    const int64_t second = args.interleaved ? first + N : pair + args.all_pairs;
    for (int64_t h = first_head; h < end; ++h) {
      const int64_t from = row_of(args.x, b, h, i), to = row_of(args.y, b, h, i);
      auto p = load<T, N>(args.x, from, first), q = load<T, N>(args.x, from, second);
      if (!args.interleaved || N == 1) {
#pragma unroll
        for (int k = 0; k < N; ++k) turn(p.v[k], q.v[k], cos[k], sin[k]);
      } else {
#pragma unroll
        for (int k = 0; k < N / 2; ++k) {
          turn(p.v[2 * k], p.v[2 * k + 1], cos[k], sin[k]);
          turn(q.v[2 * k], q.v[2 * k + 1], cos[N / 2 + k], sin[N / 2 + k]);
        }
      }
      store(args.y, to, first, p);
      store(args.y, to, second, q);
    }
  }
}

template <class T, int N>
void run(const RotaryArgs& args, const Launch& launch) {
  const int64_t alone = (args.pairs + args.rest) / N * args.positions * args.batch;
  const int64_t wanted = int64_t(launch.multiprocessors) * kResident;
  int64_t split = (wanted + alone - 1) / alone;
  if (split > args.heads) split = args.heads;
  launch_kernel<rotary_kernel<T, N>>(loop_blocks(alone * split, kThreads, launch), kThreads, launch,
                                     args, int(split));
}

}  // namespace

void launch_rotary(Float type, const RotaryArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    if (args.packed)
      run<T, kPack<T>>(args, launch);
    else
      run<T, 1>(args, launch);
  })
}

}  // namespace catena::gpu
