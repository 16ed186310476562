// Softmax cross entropy and its gradient, accuracy, label range: one kernel each.
//
// A warp, a block or a thread computes a sample, depending on the layout of its classes. The last
// block to finish adds the results of all blocks, always in the same order, so that equal calls
// give equal bits.
#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/loss/exponentials.cuh"
#include "backends/cuda/loss/loss.h"

namespace catena::gpu {
namespace {

enum Sharing { kWarpRow, kBlockRow, kThreadColumn };

constexpr int64_t kThreadClasses = 32;
constexpr int64_t kWarpClasses = 1024;    // samples with more classes are shared by a block
constexpr int64_t kOneBlockWork = 16384;  // fewer elements are the work of one block
constexpr int kThreads = 256, kOneBlockThreads = 1024;

__host__ __device__ inline Sharing sharing_of(const SampleArgs& s) {
  if (s.inner > 1) return kThreadColumn;
  return s.classes <= kWarpClasses ? kWarpRow : kBlockRow;
}

// The same, if one block has a thread for every sample. Few classes are then read one by one.
__host__ __device__ inline Sharing small_sharing_of(const SampleArgs& s) {
  const bool thread_each = s.classes <= kThreadClasses && s.outer * s.inner <= kOneBlockThreads;
  return thread_each ? kThreadColumn : sharing_of(s);
}

__device__ inline int64_t first_element(const SampleArgs& s, int64_t sample) {
  if (s.inner == 1) return sample * s.classes;
  return sample / s.inner * s.classes * s.inner + sample % s.inner;
}

// Calls f(sample) in every thread of the group that shares the sample.
template <Sharing kSharing, class F>
__device__ void for_samples(const SampleArgs& s, F f) {
  const int64_t samples = s.outer * s.inner;
  const int per_block = kSharing == kWarpRow    ? blockDim.x / 32
                        : kSharing == kBlockRow ? 1
                                                : blockDim.x;
  const int mine = kSharing == kWarpRow    ? threadIdx.x / 32
                   : kSharing == kBlockRow ? 0
                                           : threadIdx.x;
  for (int64_t i = int64_t(blockIdx.x) * per_block + mine; i < samples;
       i += int64_t(gridDim.x) * per_block)
    f(i);
}

// Whether this thread writes the group's result, and its index in the group.
template <Sharing kSharing>
__device__ int place() {
  return kSharing == kWarpRow ? threadIdx.x % 32 : kSharing == kBlockRow ? threadIdx.x : 0;
}

// The largest score of one sample, and the logarithm of the sum of exp(x - largest).
template <class C>
struct LogSumExp {
  C largest, log_sum;
};

// What is subtracted from scores whose maximum this is. There is none before the first one.
template <class C>
__device__ C base_of(C maximum) {
  return maximum == lowest<C>() ? C(0) : maximum;
}

// Adds K packs, which are `step` apart, to a thread's sum. They are all read before they are used,
// and change the maximum once. A NaN reaches the sum.
template <int K, class T, int N>
__device__ void add_packs(LogSum<Compute<T>>& s, const Pack<T, N>* from, unsigned step) {
  using C = Compute<T>;
  Pack<T, N> packs[K];
#pragma unroll
  for (int i = 0; i < K; ++i) packs[i] = from[i * step];
  C maximum = s.maximum, sum = C(0);
#pragma unroll
  for (int i = 0; i < K; ++i) {
#pragma unroll
    for (int k = 0; k < N; ++k) maximum = larger(maximum, widen(packs[i].v[k]));
  }
  const C base = base_of(maximum);
#pragma unroll
  for (int i = 0; i < K; ++i) {
#pragma unroll
    for (int k = 0; k < N; ++k) sum += rough_exp(widen(packs[i].v[k]) - base);
  }
  s.sum = s.sum * rough_exp(s.maximum - base) + sum;
  s.maximum = maximum;
}

// The same of a whole row of packs of N, for all threads of the block.
template <class T, int N>
__device__ LogSumExp<Compute<T>> row_log_sum_exp(const T* x, int64_t classes, Compute<T>* shared) {
  using C = Compute<T>;
  constexpr int kTogether = N == 1 ? 4 : 2;
  const auto* at = reinterpret_cast<const Pack<T, N>*>(x) + threadIdx.x;
  const auto* const end = reinterpret_cast<const Pack<T, N>*>(x) + classes / N;
  const unsigned step = blockDim.x;
  LogSum<C> s;
  for (; end - at > int64_t((kTogether - 1) * step); at += kTogether * step)
    add_packs<kTogether>(s, at, step);
  for (; at < end; at += step) add_packs<1>(s, at, step);
  const C maximum = block_reduce(s.maximum, MaxOp(), shared);
  const C sum = block_reduce(s.sum * rough_exp(s.maximum - base_of(maximum)), AddOp(), shared);
  return {maximum, log_of(sum)};
}

// All threads of the group get it. N: for kBlockRow, elements read at once.
template <class T, Sharing kSharing, int N>
__device__ LogSumExp<Compute<T>> log_sum_exp(const T* x, int64_t classes, int64_t step,
                                             Compute<T>* shared) {
  using C = Compute<T>;
  if constexpr (kSharing == kWarpRow) {
    C maximum = lowest<C>(), sum = C(0);
    for (int i = place<kSharing>(); i < classes; i += 32)
      maximum = MaxOp()(maximum, C(widen(x[i])));
    maximum = warp_reduce(maximum, MaxOp());
    for (int i = place<kSharing>(); i < classes; i += 32) sum += exp_of(widen(x[i]) - maximum);
    return {maximum, log_of(warp_reduce(sum, AddOp()))};
  } else if constexpr (kSharing == kBlockRow) {
    return row_log_sum_exp<T, N>(x, classes, shared);
  } else if (classes <= kThreadClasses) {
    C maximum = lowest<C>(), sum = C(0);
    for (int i = 0; i < classes; ++i) maximum = MaxOp()(maximum, C(widen(x[i * step])));
    for (int i = 0; i < classes; ++i) sum += exp_of(widen(x[i * step]) - maximum);
    return {maximum, log_of(sum)};
  } else {
    LogSum<C> s;
    for (int64_t i = 0; i < classes; ++i) s.add(widen(x[i * step]));
    return {s.maximum, log_of(s.sum)};
  }
}

// Sums the threads' numbers over all blocks. f(total) runs in one thread of the last block.
template <class F>
__device__ void add_up(double sum, long long valid, const SampleArgs& s, F f) {
  __shared__ double sums[32];
  __shared__ long long counts[32];
  __shared__ bool last;
  sum = block_reduce(sum, AddOp(), sums);
  valid = block_reduce(valid, AddOp(), counts);
  if (gridDim.x > 1) {
    if (threadIdx.x == 0) {
      s.scratch.sums[blockIdx.x] = {sum, valid};
      __threadfence();
      last = atomicAdd(s.scratch.finished, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    sum = 0;
    valid = 0;
    for (unsigned b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
      const volatile Tally* tally = &s.scratch.sums[b];
      sum += tally->sum;
      valid += tally->valid;
    }
    sum = block_reduce(sum, AddOp(), sums);
    valid = block_reduce(valid, AddOp(), counts);
  }
  if (threadIdx.x == 0) f(Tally{sum, valid});
}

// Blocks that read rows have fewer registers and threads, so that more of them read at a time.
constexpr int kRowThreads = 512;
template <Sharing kSharing>
constexpr int kMostThreads = kSharing == kBlockRow ? kRowThreads : kOneBlockThreads;
template <class T, Sharing kSharing>
constexpr int kBlocksAtOnce = kSharing == kBlockRow && sizeof(T) < 8 ? 2 : 1;

template <class T, Sharing kSharing, int N = 1>
__global__ void __launch_bounds__(kMostThreads<kSharing>, kBlocksAtOnce<T, kSharing>)
    cross_entropy_kernel(CrossEntropyArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ C shared[32];
  const SampleArgs& s = args.samples;
  double sum = 0;
  long long valid = 0;
  for_samples<kSharing>(s, [&](int64_t i) {
    const T* x = static_cast<const T*>(s.x) + first_element(s, i);
    const LogSumExp<C> lse = log_sum_exp<T, kSharing, N>(x, s.classes, s.inner, shared);
    if (place<kSharing>() != 0) return;
    static_cast<C*>(args.lse)[i] = lse.largest;
    static_cast<C*>(args.lse)[s.outer * s.inner + i] = lse.log_sum;
    const int32_t label = s.t[i];
    if (label == s.ignore_label) return;
    ++valid;
    if (label < 0 || label >= s.classes)
      sum = not_a_number<double>();
    else
      sum += (double(lse.largest) - double(widen(x[label * s.inner]))) + double(lse.log_sum);
  });
  add_up(sum, valid, s, [&](Tally total) {
    const long long divisor = args.normalize ? total.valid : s.outer;
    const double count = double(divisor > 1 ? divisor : 1);
    *static_cast<C*>(args.count) = C(count);
    if (args.counted) *static_cast<C*>(args.counted) = C(total.valid);
    if (args.wide_loss)
      *static_cast<C*>(args.loss) = C(total.sum / count);
    else
      *static_cast<T*>(args.loss) = Narrow<T>::from(C(total.sum / count));
  });
}

// What a sample's probabilities, its label and the spread over all classes weigh in its gradient.
template <class C>
struct SampleFactors {
  C all, label, spread;
};

template <class C>
__device__ SampleFactors<C> factors_of(const CrossEntropyArgs& args, int64_t sample, C common) {
  if (args.factors == nullptr) return {common, common, C(0)};
  const C* factors = static_cast<const C*>(args.factors);
  const C all = factors[sample];
  if (args.spread == nullptr) return {all, all, C(0)};
  const int64_t samples = args.samples.outer * args.samples.inner;
  return {all, factors[samples + sample], factors[2 * samples + sample]};
}

template <class T>
__device__ Compute<T> gradient_of_loss(const CrossEntropyArgs& args) {
  if (args.wide_loss) return *static_cast<const Compute<T>*>(args.gloss);
  return widen(*static_cast<const T*>(args.gloss));
}

// Elements of a row in packs of N. With kThreadColumn all elements are read one at a time.
template <class T, Sharing kSharing, int N>
__global__ void __launch_bounds__(kThreads) cross_entropy_grad_kernel(CrossEntropyArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using P = Pack<T, N>;
  const SampleArgs& s = args.samples;
  const T* x = static_cast<const T*>(s.x);
  T* gx = static_cast<T*>(args.gx);
  const C* largest = static_cast<const C*>(args.lse);
  const C* log_sum = largest + s.outer * s.inner;
  const C* spread = static_cast<const C*>(args.spread);
  const C common =
      args.factors ? C(0) : gradient_of_loss<T>(args) / *static_cast<const C*>(args.count);
  auto value = [&](C v, const LogSumExp<C>& lse, const SampleFactors<C>& factor, int32_t label,
                   int64_t index) {
    if (label == s.ignore_label) return C(0);
    C g = exp_of((v - lse.largest) - lse.log_sum) * factor.all;
    if (index == label) g -= factor.label;
    return spread == nullptr ? g : g - factor.spread * spread[index];
  };
  if constexpr (kSharing == kThreadColumn) {
    const int64_t size = s.outer * s.classes * s.inner, stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += stride) {
      const int64_t column = i % s.inner, rest = i / s.inner;
      const int64_t sample = rest / s.classes * s.inner + column;
      const LogSumExp<C> lse{largest[sample], log_sum[sample]};
      gx[i] = Narrow<T>::from(
          value(widen(x[i]), lse, factors_of(args, sample, common), s.t[sample], rest % s.classes));
    }
  } else {
    const int members = kSharing == kWarpRow ? 32 : blockDim.x;
    for_samples<kSharing>(s, [&](int64_t row) {
      const LogSumExp<C> lse{largest[row], log_sum[row]};
      const SampleFactors<C> factor = factors_of(args, row, common);
      const int32_t label = s.t[row];
      const P* from = reinterpret_cast<const P*>(x + row * s.classes);
      P* to = reinterpret_cast<P*>(gx + row * s.classes);
      for (int64_t i = place<kSharing>(); i < s.classes / N; i += members) {
        P v = from[i];
#pragma unroll
        for (int k = 0; k < N; ++k)
          v.v[k] = Narrow<T>::from(value(widen(v.v[k]), lse, factor, label, i * N + k));
        to[i] = v;
      }
    });
  }
}

// The first of the largest elements. NaN counts as larger than everything.
template <class C>
struct Best {
  C value;
  int64_t index;

  __device__ void merge(C v, int64_t i) {
    const bool nan = v != v, own_nan = value != value;
    const bool equal = v == value || (nan && own_nan);
    if (equal ? i < index : nan || (!own_nan && v > value)) {
      value = v;
      index = i;
    }
  }
};

template <class C>
__device__ Best<C> warp_best(Best<C> b) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const C value = __shfl_xor_sync(kAllLanes, b.value, offset);
    const long long index = __shfl_xor_sync(kAllLanes, (long long)b.index, offset);
    b.merge(value, index);
  }
  return b;
}

constexpr int64_t kNoClass = INT64_MIN;

// The class of the largest score; kNoClass if a score is NaN.
template <class T, Sharing kSharing>
__device__ int64_t arg_max(const T* x, int64_t classes, int64_t step) {
  using C = Compute<T>;
  __shared__ C values[32];
  __shared__ int64_t indices[32];
  Best<C> best{lowest<C>(), classes};
  const int members = kSharing == kWarpRow ? 32 : kSharing == kBlockRow ? blockDim.x : 1;
  for (int64_t i = place<kSharing>(); i < classes; i += members) best.merge(widen(x[i * step]), i);
  if constexpr (kSharing != kThreadColumn) best = warp_best(best);
  if constexpr (kSharing == kBlockRow) {
    if (threadIdx.x % 32 == 0) {
      values[threadIdx.x / 32] = best.value;
      indices[threadIdx.x / 32] = best.index;
    }
    __syncthreads();
    for (int w = 0; w < int(blockDim.x / 32); ++w) best.merge(values[w], indices[w]);
    __syncthreads();
  }
  return best.value == best.value ? best.index : kNoClass;
}

template <class T, Sharing kSharing>
__global__ void __launch_bounds__(kOneBlockThreads) accuracy_kernel(SampleArgs s, void* result) {
  wait_for_previous_kernel();
  double correct = 0;
  long long valid = 0;
  for_samples<kSharing>(s, [&](int64_t i) {
    const int64_t best =
        arg_max<T, kSharing>(static_cast<const T*>(s.x) + first_element(s, i), s.classes, s.inner);
    if (place<kSharing>() != 0 || (s.has_ignore && s.t[i] == s.ignore_label)) return;
    ++valid;
    if (best == s.t[i]) correct += 1;
  });
  add_up(correct, valid, s, [&](Tally total) {
    const double share = total.sum / double(total.valid > 1 ? total.valid : 1);
    *static_cast<Compute<T>*>(result) = Compute<T>(share);
  });
}

// Runs the statement with kSharing as a compile-time constant.
#define CATENA_SHARING_SWITCH(sharing, ...)       \
  switch (sharing) {                              \
    case kWarpRow: {                              \
      constexpr Sharing kSharing = kWarpRow;      \
      __VA_ARGS__;                                \
      break;                                      \
    }                                             \
    case kBlockRow: {                             \
      constexpr Sharing kSharing = kBlockRow;     \
      __VA_ARGS__;                                \
      break;                                      \
    }                                             \
    case kThreadColumn: {                         \
      constexpr Sharing kSharing = kThreadColumn; \
      __VA_ARGS__;                                \
      break;                                      \
    }                                             \
  }

int threads_for(int blocks) { return blocks == 1 ? kOneBlockThreads : kThreads; }

}  // namespace

int sample_blocks(const SampleArgs& s, const Launch& launch) {
  const int64_t samples = s.outer * s.inner;
  if (samples * s.classes <= kOneBlockWork) return 1;
  const Sharing sharing = sharing_of(s);
  const int64_t per_block = sharing == kWarpRow    ? kThreads / 32
                            : sharing == kBlockRow ? 1
                                                   : kThreads;
  const int64_t wanted = (samples + per_block - 1) / per_block,
                most = int64_t(launch.multiprocessors) * (sharing == kBlockRow ? 24 : 8);
  return int(wanted < most ? wanted : most);
}

void launch_cross_entropy(Float type, const CrossEntropyArgs& args, int blocks,
                          const Launch& launch) {
  const Sharing sharing = small_sharing_of(args.samples);
  const int threads = sharing == kBlockRow && blocks == 1 ? kRowThreads : threads_for(blocks);
  CATENA_FLOAT_SWITCH(type, {
    if (sharing == kBlockRow && args.aligned && args.samples.classes % kPack<T> == 0) {
      launch_kernel<cross_entropy_kernel<T, kBlockRow, kPack<T>>>(blocks, threads, launch, args);
    } else {
      CATENA_SHARING_SWITCH(sharing, (launch_kernel<cross_entropy_kernel<T, kSharing>>(
                                         blocks, threads, launch, args)))
    }
  })
}

void launch_cross_entropy_grad(Float type, const CrossEntropyArgs& args, const Launch& launch) {
  const SampleArgs& s = args.samples;
  const Sharing sharing = sharing_of(s);
  const int64_t samples = s.outer * s.inner;
  const int64_t wanted = sharing == kWarpRow    ? (samples + 7) / 8
                         : sharing == kBlockRow ? samples
                                                : (samples * s.classes + kThreads - 1) / kThreads;
  const int64_t most = int64_t(launch.multiprocessors) * 16;
  const unsigned blocks = unsigned(wanted < most ? wanted : most);
  CATENA_FLOAT_SWITCH(type, {
    if (sharing != kThreadColumn && args.aligned && s.classes % kPack<T> == 0) {
      CATENA_SHARING_SWITCH(sharing,
                            (launch_kernel<cross_entropy_grad_kernel<T, kSharing, kPack<T>>>(
                                blocks, kThreads, launch, args)))
    } else {
      CATENA_SHARING_SWITCH(sharing, (launch_kernel<cross_entropy_grad_kernel<T, kSharing, 1>>(
                                         blocks, kThreads, launch, args)))
    }
  })
}

void launch_accuracy(Float type, const SampleArgs& args, void* result, int blocks,
                     const Launch& launch) {
  CATENA_FLOAT_SWITCH(
      type, CATENA_SHARING_SWITCH(small_sharing_of(args),
                                  (launch_kernel<accuracy_kernel<T, kSharing>>(
                                      blocks, threads_for(blocks), launch, args, result))))
}

}  // namespace catena::gpu
