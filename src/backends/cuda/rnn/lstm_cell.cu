// One step of an LSTM and its gradient: a thread for each cell, adjacent threads for adjacent cells
// of a sequence. A thread reads all of its cell before it writes, so that results may be in the
// place of operands.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/rnn/lstm_cell.h"

namespace catena::gpu {
namespace {

constexpr int kThreads = 128;

__device__ inline float tanh_of(float x) { return tanhf(x); }
__device__ inline double tanh_of(double x) { return tanh(x); }
__device__ inline float exp_of(float x) { return expf(x); }
__device__ inline double exp_of(double x) { return exp(x); }
// exp(x) would overflow where the result is finite.
template <class C>
__device__ C sigmoid_of(C x) {
  const C e = exp_of(x < C(0) ? x : -x);
  return (x < C(0) ? e : C(1)) / (C(1) + e);
}

// Element i, or 0 of an absent array.
template <class T>
__device__ Compute<T> value(const void* array, int64_t i) {
  return array == nullptr ? Compute<T>(0) : widen(static_cast<const T*>(array)[i]);
}
template <class T>
__device__ void store(void* array, int64_t i, Compute<T> v) {
  static_cast<T*>(array)[i] = Narrow<T>::from(v);
}

// Calls body(cell, gate): the positions of a cell in (sequences, cells), and of its first gate in
// (sequences, 4 * cells).
template <class Args, class F>
__device__ void for_cells(const Args& args, F body) {
  const int64_t count = args.sequences * args.cells, step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    body(i, i + i / args.cells * 3 * args.cells);
}

template <class T>
__global__ void cell_kernel(LstmCellArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const int64_t n = args.cells;
  for_cells(args, [&](int64_t cell, int64_t gate) {
    const C a = tanh_of(value<T>(args.gates, gate));
    const C i = sigmoid_of(value<T>(args.gates, gate + n));
    const C f = sigmoid_of(value<T>(args.gates, gate + 2 * n));
    const C o = sigmoid_of(value<T>(args.gates, gate + 3 * n));
    const C c = a * i + value<T>(args.c_prev, cell) * f;
    store<T>(args.c, cell, c);
    store<T>(args.h, cell, tanh_of(c) * o);
    if (args.activated == nullptr) return;
    store<T>(args.activated, gate, a);
    store<T>(args.activated, gate + n, i);
    store<T>(args.activated, gate + 2 * n, f);
    store<T>(args.activated, gate + 3 * n, o);
  });
}

template <class T>
__global__ void cell_grad_kernel(LstmCellGradArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const int64_t n = args.cells;
  for_cells(args, [&](int64_t cell, int64_t gate) {
    C a = value<T>(args.activated, gate), i = value<T>(args.activated, gate + n);
    C f = value<T>(args.activated, gate + 2 * n), o = value<T>(args.activated, gate + 3 * n);
    if (args.of_gates) a = tanh_of(a), i = sigmoid_of(i), f = sigmoid_of(f), o = sigmoid_of(o);
    const C before = value<T>(args.c_prev, cell), t = tanh_of(value<T>(args.c, cell));
    const C g = value<T>(args.gh, cell) + value<T>(args.gh_next, cell);
    const C of_c = value<T>(args.gc, cell) + g * o * (C(1) - t * t);
    store<T>(args.g_gates, gate, of_c * i * (C(1) - a * a));
    store<T>(args.g_gates, gate + n, of_c * a * i * (C(1) - i));
    store<T>(args.g_gates, gate + 2 * n, of_c * before * f * (C(1) - f));
    store<T>(args.g_gates, gate + 3 * n, g * t * o * (C(1) - o));
    if (args.gc_prev != nullptr) store<T>(args.gc_prev, cell, of_c * f);
  });
}

}  // namespace

void launch_lstm_cell(Float type, const LstmCellArgs& args, const Launch& launch) {
  const unsigned blocks = loop_blocks(args.sequences * args.cells, kThreads, launch);
  CATENA_FLOAT_SWITCH(type, (launch_kernel<cell_kernel<T>>(blocks, kThreads, launch, args)))
}

void launch_lstm_cell_grad(Float type, const LstmCellGradArgs& args, const Launch& launch) {
  const unsigned blocks = loop_blocks(args.sequences * args.cells, kThreads, launch);
  CATENA_FLOAT_SWITCH(type, (launch_kernel<cell_grad_kernel<T>>(blocks, kThreads, launch, args)))
}

}  // namespace catena::gpu
