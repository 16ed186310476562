// Gated activations and their gradients: a thread takes packs of 16 bytes, or single numbers where
// rows are not made of packs.
#include "backends/cuda/activation/gated.h"

#include "backends/cuda/activation/gates.cuh"
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

// Where pack i of all rows is in an operand, in packs of N numbers.
template <int N>
struct Position {
  int64_t row, column;
  __device__ Position(int64_t i, int64_t columns) {
    const int64_t packs = columns / N;
    const uint64_t both = uint64_t(i) | uint64_t(packs);
    row = both >> 32 ? i / packs : int64_t(uint32_t(i) / uint32_t(packs));
    column = i - row * packs;
  }
  __device__ int64_t in(const GatedOperand& o) const { return row * (o.step / N) + column; }
};

template <class T, int N>
__device__ Pack<T, N> load(const GatedOperand& o, const Position<N>& at) {
  return static_cast<const Pack<T, N>*>(o.data)[at.in(o)];
}
template <class T, int N>
__device__ void store(const GatedOperand& o, const Position<N>& at, const Pack<T, N>& pack) {
  static_cast<Pack<T, N>*>(o.data)[at.in(o)] = pack;
}

template <class T, Gated kFunction, int N>
__global__ void __launch_bounds__(kThreads) gated_kernel(GatedArgs args) {
  wait_for_previous_kernel();
  const int64_t count = args.rows * (args.columns / N), step = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    const Position<N> at(i, args.columns);
    const auto gate = load<T, N>(args.gate, at), x = load<T, N>(args.x, at);
    Pack<T, N> y;
#pragma unroll
    for (int k = 0; k < N; ++k)
      y.v[k] =
          Narrow<T>::from(gate_of<kFunction, PreciseMath>(widen(gate.v[k])).value * widen(x.v[k]));
    store(args.y, at, y);
  }
}

template <class T, Gated kFunction, int N>
__global__ void __launch_bounds__(kThreads) gated_grad_kernel(GatedArgs args) {
  wait_for_previous_kernel();
  const int64_t count = args.rows * (args.columns / N), step = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    const Position<N> at(i, args.columns);
    const auto gate = load<T, N>(args.gate, at), x = load<T, N>(args.x, at),
               gy = load<T, N>(args.gy, at);
    Pack<T, N> g_gate, gx;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const auto f = gate_of<kFunction, PreciseMath>(widen(gate.v[k]));
      const auto g = widen(gy.v[k]);
      g_gate.v[k] = Narrow<T>::from(g * widen(x.v[k]) * f.slope);
      gx.v[k] = Narrow<T>::from(g * f.value);
    }
    if (args.g_gate.data != nullptr) store(args.g_gate, at, g_gate);
    if (args.gx.data != nullptr) store(args.gx, at, gx);
  }
}

template <class T, Gated kFunction, int N>
void run(const GatedArgs& args, bool gradient, const Launch& launch) {
  const unsigned blocks = loop_blocks(args.rows * (args.columns / N), kThreads, launch);
  if (gradient)
    launch_kernel<gated_grad_kernel<T, kFunction, N>>(blocks, kThreads, launch, args);
  else
    launch_kernel<gated_kernel<T, kFunction, N>>(blocks, kThreads, launch, args);
}

template <class T, Gated kFunction>
void run_packs(const GatedArgs& args, bool gradient, const Launch& launch) {
  if (args.packed)
    run<T, kFunction, kPack<T>>(args, gradient, launch);
  else
    run<T, kFunction, 1>(args, gradient, launch);
}

void run_function(Float type, Gated function, const GatedArgs& args, bool gradient,
                  const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    switch (function) {
      case Gated::kSilu: return run_packs<T, Gated::kSilu>(args, gradient, launch);
      case Gated::kGelu: return run_packs<T, Gated::kGelu>(args, gradient, launch);
      case Gated::kGeluTanh: return run_packs<T, Gated::kGeluTanh>(args, gradient, launch);
    }
  })
}

}  // namespace

void launch_gated(Float type, Gated function, const GatedArgs& args, const Launch& launch) {
  run_function(type, function, args, false, launch);
}
void launch_gated_grad(Float type, Gated function, const GatedArgs& args, const Launch& launch) {
  run_function(type, function, args, true, launch);
}

}  // namespace catena::gpu
