// Softmax and log-softmax, forward and gradient.
//
// Rows with contiguous elements are read once, kept in registers and written once, by a warp or a
// block for each row. Longer rows are read twice. If the classes are not the last axis, adjacent
// threads take adjacent columns.
#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/softmax/softmax.h"

namespace catena::gpu {
namespace {

constexpr int kRowPacks = 8;  // packs that a thread keeps in registers
constexpr int kWarpRows = 4;  // rows of a block, if a warp takes one
constexpr int kMostThreads = 1024;

// The sums that a row needs: of exp(x - maximum), or of the terms that the gradient subtracts.
template <class C, bool kLog>
__device__ C forward_value(C x, C maximum, C sum, C log_sum) {
  if (kLog) return (x - maximum) - log_sum;
  return exp_of(x - maximum) / sum;
}
template <class C, bool kLog>
__device__ C grad_term(C y, C gy) {
  return kLog ? gy : y * gy;
}
template <class C, bool kLog>
__device__ C grad_value(C y, C gy, C sum) {
  return kLog ? gy - exp_of(y) * sum : y * (gy - sum);
}

template <class T, bool kLog, bool kGrad, int N, bool kWarp>
__global__ void __launch_bounds__(kWarp ? 32 * kWarpRows : kMostThreads / 2, kWarp || kGrad ? 1 : 2)
    row_kernel(SoftmaxArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using P = Pack<T, N>;
  __shared__ C shared[32];
  const int members = kWarp ? 32 : blockDim.x, me = kWarp ? threadIdx.x % 32 : threadIdx.x;
  const int64_t row = kWarp ? int64_t(blockIdx.x) * kWarpRows + threadIdx.x / 32 : blockIdx.x;
  if (row >= args.outer) return;  // whole groups leave
  const int packs = int(args.classes / N);
  const P* x = reinterpret_cast<const P*>(static_cast<const T*>(args.x) + row * args.classes);
  P* y = reinterpret_cast<P*>(static_cast<T*>(args.y) + row * args.classes);
  P vx[kRowPacks], vg[kGrad ? kRowPacks : 1];
#pragma unroll
  for (int i = 0; i < kRowPacks; ++i) {
    if (i * members + me < packs) vx[i] = x[i * members + me];
  }
  C sum = C(0), maximum = lowest<C>(), log_sum = C(0);
  if constexpr (kGrad) {
    const P* gy = reinterpret_cast<const P*>(static_cast<const T*>(args.gy) + row * args.classes);
#pragma unroll
    for (int i = 0; i < kRowPacks; ++i) {
      if (i * members + me >= packs) break;
      vg[i] = gy[i * members + me];
#pragma unroll
      for (int k = 0; k < N; ++k) sum += grad_term<C, kLog>(widen(vx[i].v[k]), widen(vg[i].v[k]));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kRowPacks; ++i) {
      if (i * members + me >= packs) break;
#pragma unroll
      for (int k = 0; k < N; ++k) maximum = MaxOp()(maximum, C(widen(vx[i].v[k])));
    }
    maximum = group_reduce<kWarp>(maximum, MaxOp(), shared);
#pragma unroll
    for (int i = 0; i < kRowPacks; ++i) {
      if (i * members + me >= packs) break;
#pragma unroll
      for (int k = 0; k < N; ++k) sum += exp_of(widen(vx[i].v[k]) - maximum);
    }
  }
  sum = group_reduce<kWarp>(sum, AddOp(), shared);
  if (kLog && !kGrad) log_sum = log_of(sum);
#pragma unroll
  for (int i = 0; i < kRowPacks; ++i) {
    if (i * members + me >= packs) break;
    P out;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if constexpr (kGrad) {
        out.v[k] = Narrow<T>::from(grad_value<C, kLog>(widen(vx[i].v[k]), widen(vg[i].v[k]), sum));
      } else {
        out.v[k] =
            Narrow<T>::from(forward_value<C, kLog>(widen(vx[i].v[k]), maximum, sum, log_sum));
      }
    }
    y[i * members + me] = out;
  }
}

// A block for each row; the row is read twice.
template <class T, bool kLog, bool kGrad>
__global__ void __launch_bounds__(kMostThreads) long_row_kernel(SoftmaxArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ C shared[64];
  const T* x = static_cast<const T*>(args.x) + blockIdx.x * args.classes;
  const T* gy = kGrad ? static_cast<const T*>(args.gy) + blockIdx.x * args.classes : nullptr;
  T* y = static_cast<T*>(args.y) + blockIdx.x * args.classes;
  LogSum<C> s;
  C sum = C(0);
  for (int64_t i = threadIdx.x; i < args.classes; i += blockDim.x) {
    if constexpr (kGrad)
      sum += grad_term<C, kLog>(widen(x[i]), widen(gy[i]));
    else
      s.add(widen(x[i]));
  }
  if constexpr (kGrad) {
    sum = block_reduce(sum, AddOp(), shared);
  } else {
    s = block_log_sum(s, shared);
  }
  const C log_sum = kLog && !kGrad ? log_of(s.sum) : C(0);
  for (int64_t i = threadIdx.x; i < args.classes; i += blockDim.x) {
    if constexpr (kGrad)
      y[i] = Narrow<T>::from(grad_value<C, kLog>(widen(x[i]), widen(gy[i]), sum));
    else
      y[i] = Narrow<T>::from(forward_value<C, kLog>(widen(x[i]), s.maximum, s.sum, log_sum));
  }
}

// A thread for each column of `classes` elements, which are `inner` apart.
template <class T, bool kLog, bool kGrad>
__global__ void __launch_bounds__(256) column_kernel(SoftmaxArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const int64_t columns = args.outer * args.inner, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t c = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; c < columns; c += stride) {
    const int64_t first = c / args.inner * args.classes * args.inner + c % args.inner;
    const T* x = static_cast<const T*>(args.x) + first;
    const T* gy = kGrad ? static_cast<const T*>(args.gy) + first : nullptr;
    T* y = static_cast<T*>(args.y) + first;
    LogSum<C> s;
    C sum = C(0);
    for (int64_t k = 0; k < args.classes; ++k) {
      const int64_t at = k * args.inner;
      if constexpr (kGrad)
        sum += grad_term<C, kLog>(widen(x[at]), widen(gy[at]));
      else
        s.add(widen(x[at]));
    }
    const C log_sum = kLog && !kGrad ? log_of(s.sum) : C(0);
    for (int64_t k = 0; k < args.classes; ++k) {
      const int64_t at = k * args.inner;
      if constexpr (kGrad)
        y[at] = Narrow<T>::from(grad_value<C, kLog>(widen(x[at]), widen(gy[at]), sum));
      else
        y[at] = Narrow<T>::from(forward_value<C, kLog>(widen(x[at]), s.maximum, s.sum, log_sum));
    }
  }
}

template <class T, bool kLog, bool kGrad, int N>
bool launch_rows(const SoftmaxArgs& args, const Launch& launch) {
  const int64_t packs = args.classes / N;
  if (packs <= 32 * (kRowPacks / 2)) {
    const int64_t blocks = (args.outer + kWarpRows - 1) / kWarpRows;
    launch_kernel<row_kernel<T, kLog, kGrad, N, true>>(unsigned(blocks), 32 * kWarpRows, launch,
                                                       args);
    return true;
  }
  if (packs > int64_t(kMostThreads) / 2 * kRowPacks) return false;
  int threads = 64;
  while (int64_t(threads) * (kRowPacks / 2) < packs && threads < kMostThreads / 2) threads *= 2;
  launch_kernel<row_kernel<T, kLog, kGrad, N, false>>(unsigned(args.outer), threads, launch, args);
  return true;
}

template <class T, bool kLog, bool kGrad>
void launch_kind(const SoftmaxArgs& args, const Launch& launch) {
  if (args.inner > 1) {
    const int64_t wanted = (args.outer * args.inner + 255) / 256,
                  most = int64_t(launch.multiprocessors) * 16;
    launch_kernel<column_kernel<T, kLog, kGrad>>(unsigned(wanted < most ? wanted : most), 256,
                                                 launch, args);
    return;
  }
  const bool packed = args.aligned && args.classes % kPack<T> == 0;
  if (packed ? launch_rows<T, kLog, kGrad, kPack<T>>(args, launch)
             : launch_rows<T, kLog, kGrad, 1>(args, launch)) {
    return;
  }
  launch_kernel<long_row_kernel<T, kLog, kGrad>>(unsigned(args.outer), kMostThreads, launch, args);
}

}  // namespace

void launch_softmax(Float type, const SoftmaxArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    if (args.log)
      launch_kind<T, true, false>(args, launch);
    else
      launch_kind<T, false, false>(args, launch);
  })
}

void launch_softmax_grad(Float type, const SoftmaxArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    if (args.log)
      launch_kind<T, true, true>(args, launch);
    else
      launch_kind<T, false, true>(args, launch);
  })
}

}  // namespace catena::gpu
