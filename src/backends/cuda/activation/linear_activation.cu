// The gradient through an activation behind a linear layer. A block goes down its part of the rows
// with packs of columns side by side, and adds up their columns in registers on the way. The sums
// of the parts are added by a second kernel. All additions have a fixed order, so that equal
// launches give equal bits.
#include "backends/cuda/activation/linear_activation.h"

#include <type_traits>

#include "backends/cuda/activation/gates.cuh"
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kAcross = 32;  // threads side by side, at most
constexpr int kAhead = 2;    // rows that a thread loads before it stores one
// Blocks of a multiprocessor that run together, at least.
template <class T>
constexpr int kResident = sizeof(T) == 2 ? 4 : 1;
constexpr int64_t kLeastRows = 16;  // of a thread, where there are several parts

template <class T, Activated kFunction>
__device__ Compute<T> slope_of(Compute<T> kept) {
  using C = Compute<T>;
  using Math = std::conditional_t<sizeof(T) == 2, RoughMath, PreciseMath>;
  if constexpr (kFunction == Activated::kRelu)
    return kept > C(0) ? C(1) : C(0);
  else if constexpr (kFunction == Activated::kGelu)
    return gate_of<Gated::kGelu, Math>(kept).slope;
  else
    return gate_of<Gated::kGeluTanh, Math>(kept).slope;
}

// The columns of the threads of a block, N each, and their rows.
template <int N>
struct Place {
  int64_t packs, pack;  // of a row, and the thread's
  int line, lines;
  __device__ explicit Place(const ActivationGradArgs& args)
      : packs(args.columns / N),
        pack(int64_t(blockIdx.x) * args.across + int(threadIdx.x) % args.across),
        line(int(threadIdx.x) / args.across),
        lines(kThreads / args.across) {}
};

// Stores the gradients of the thread's rows and adds them to its sums.
template <class T, Activated kFunction, int N>
__device__ void go_down(const ActivationGradArgs& args, const Place<N>& at, Compute<T> (&sums)[N]) {
  using C = Compute<T>;
  using P = Pack<T, N>;
  const int64_t begin = blockIdx.y * args.of_part,
                end = begin + args.of_part < args.rows ? begin + args.of_part : args.rows;
  for (int64_t first = begin + at.line; first < end; first += kAhead * at.lines) {
    P gy[kAhead], kept[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t row = first + u * at.lines, i = row * at.packs + at.pack;
      if (row >= end) break;
      gy[u] = static_cast<const P*>(args.gy)[i];
      kept[u] = static_cast<const P*>(args.kept)[i];
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int64_t row = first + u * at.lines;
      if (row >= end) break;
      P gx;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const C slope = slope_of<T, kFunction>(widen(kept[u].v[k]));
        const C g =
            kFunction == Activated::kRelu && slope == C(0) ? C(0) : widen(gy[u].v[k]) * slope;
        sums[k] += g;
        gx.v[k] = Narrow<T>::from(g);
      }
      static_cast<P*>(args.gx)[row * at.packs + at.pack] = gx;
    }
  }
}

template <class T, Activated kFunction, int N>
__global__ void __launch_bounds__(kThreads, kResident<T>)
    activation_grad_kernel(ActivationGradArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const Place<N> at(args);
  C sums[N] = {};
  if (at.pack < at.packs) go_down<T, kFunction, N>(args, at, sums);
  if (args.partials == nullptr) return;
  __shared__ C shared[N][kThreads];
#pragma unroll
  for (int k = 0; k < N; ++k) shared[k][threadIdx.x] = sums[k];
  __syncthreads();
  for (int i = threadIdx.x; i < N * args.across; i += kThreads) {
    const int k = i / args.across, thread = i % args.across;
    const int64_t pack = int64_t(blockIdx.x) * args.across + thread;
    if (pack >= at.packs) continue;
    C sum = C(0);
    for (int line = 0; line < at.lines; ++line) sum += shared[k][line * args.across + thread];
    static_cast<C*>(args.partials)[blockIdx.y * args.columns + pack * N + k] = sum;
  }
}

// A warp has adjacent columns, and each warp of the block other parts of them.
template <class T>
__global__ void __launch_bounds__(kThreads) add_parts_kernel(ActivationGradArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ C shared[kThreads];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t column = int64_t(blockIdx.x) * 32 + lane;
  C sum = C(0);
  if (column < args.columns)
    for (int64_t part = warp; part < args.parts; part += kThreads / 32)
      sum += static_cast<const C*>(args.partials)[part * args.columns + column];
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (warp > 0 || column >= args.columns) return;
  for (int other = 1; other < kThreads / 32; ++other) sum += shared[32 * other + lane];
  if (args.wide_sums) {
    C& target = static_cast<C*>(args.sums)[column];
    target = args.accumulate ? target + sum : sum;
  } else {
    T& target = static_cast<T*>(args.sums)[column];
    target = Narrow<T>::from(args.accumulate ? widen(target) + sum : sum);
  }
}

unsigned quotient_above(int64_t a, int64_t b) { return unsigned((a + b - 1) / b); }

template <class T, Activated kFunction, int N>
void run(const ActivationGradArgs& args, const Launch& launch) {
  const dim3 grid(quotient_above(args.columns / N, args.across), unsigned(args.parts));
  launch_kernel<activation_grad_kernel<T, kFunction, N>>(grid, kThreads, launch, args);
  if (args.partials != nullptr)
    launch_kernel<add_parts_kernel<T>>(quotient_above(args.columns, 32), kThreads, launch, args);
}

template <class T, Activated kFunction>
void run_packs(const ActivationGradArgs& args, const Launch& launch) {
  if (args.packed)
    run<T, kFunction, kPack<T>>(args, launch);
  else
    run<T, kFunction, 1>(args, launch);
}

// Blocks of 16-bit numbers all run at once; of others, whose registers leave room for fewer, those
// that end make room.
int64_t parts_that_fit(int64_t itemsize, int64_t strips, const Launch& launch) {
  constexpr int64_t kSeveralWaves = 8;
  if (itemsize > 2) return (launch.multiprocessors * kSeveralWaves + strips - 1) / strips;
  const int64_t at_once = int64_t(launch.multiprocessors) * kResident<__half>;
  return at_once > strips ? at_once / strips : 1;
}

}  // namespace

void plan_activation_grad(ActivationGradArgs& args, int64_t itemsize, const Launch& launch) {
  const int64_t packs = args.packed ? args.columns * itemsize / 16 : args.columns;
  args.across = 1;
  while (args.across < kAcross && args.across < packs) args.across *= 2;
  const int64_t strips = (packs + args.across - 1) / args.across,
                of_line = kThreads / args.across * kLeastRows,
                useful = (args.rows + of_line - 1) / of_line,
                fitting = parts_that_fit(itemsize, strips, launch);
  const int64_t parts = useful < fitting ? useful : fitting;
  args.of_part = (args.rows + parts - 1) / parts;
  args.parts = (args.rows + args.of_part - 1) / args.of_part;
}

void launch_activation_grad(Float type, Activated function, const ActivationGradArgs& args,
                            const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    switch (function) {
      case Activated::kRelu: return run_packs<T, Activated::kRelu>(args, launch);
      case Activated::kGelu: return run_packs<T, Activated::kGelu>(args, launch);
      case Activated::kGeluTanh: return run_packs<T, Activated::kGeluTanh>(args, launch);
    }
  })
}

}  // namespace catena::gpu
