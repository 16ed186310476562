// Softmax cross entropy whose gradient replaces the scores: the scores are read once and written
// once.
//
// A block keeps the row of a sample in shared memory. While it writes the gradient, it copies its
// next row into the places that become free and adds up the exponentials of what has come, so that
// memory reads, writes and arithmetic overlap. Rows that do not fit are read twice from memory.
#include "backends/cuda/loss/cross_entropy_in_place.h"

#include "backends/cuda/common/async_copy.cuh"
#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/common/dynamic_shared.cuh"
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/pairs.cuh"
#include "backends/cuda/loss/exponentials.cuh"

namespace catena::gpu {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kResidentThreads = 2048;  // of a multiprocessor
constexpr int kThreads = 256;           // of kernels with a thread for each column or element
constexpr int kOwnShared = 2048;        // bytes that a block needs beside its row, rounded up

// Numbers --------------------------------------------------------------------------------------

// exp(v - largest) for v <= largest, which is finite.
template <class T, bool kIsNarrow = sizeof(T) == 2>
struct ExpBelow {
  using C = Compute<T>;
  C largest;
  __device__ explicit ExpBelow(C largest) : largest(largest) {}
  __device__ C operator()(C v) const { return exp_of(C(v - largest)); }
};
// 16-bit results would not show more digits than the hardware's power of two. A rounded product
// largest * slope is the same for all numbers of a row and cancels in their quotients. Numbers so
// large that it would overflow are equal or too far apart for any slope.
template <class T>
struct ExpBelow<T, true> {
  float slope, base;
  __device__ explicit ExpBelow(float largest)
      : slope(fabsf(largest) < 1e30f ? 1.4426950408889634f : 1.0f), base(-largest * slope) {}
  __device__ float operator()(float v) const { return rough_exp2(fmaf(v, slope, base)); }
};

// What the sample's probabilities, its label and the spread weigh in its gradient, and the weight
// of its label in its loss.
template <class C>
struct Weights {
  C all, label, spread, loss;
};

template <class T, class C = Compute<T>>
__device__ Weights<C> weights_of(const InPlaceArgs& args, int64_t sample) {
  const C w = args.weights ? static_cast<const C*>(args.weights)[sample] : C(1);
  const C total = args.total ? *static_cast<const C*>(args.total) : C(0);
  C scale = args.gloss ? widen(*static_cast<const T*>(args.gloss)) : C(1);
  if (args.divisor) scale = scale / *static_cast<const C*>(args.divisor);
  if (args.factors) scale = scale * static_cast<const C*>(args.factors)[sample];
  return {(w + total) * scale, w * scale, scale, w};
}

// An infinite loss that weighs nothing counts 0.
template <class C>
__device__ C product(C weight, C loss) {
  const bool is_infinite =
      loss == loss && loss - loss != C(0);  // isinf is not one name on the host
  return weight == C(0) && is_infinite ? C(0) : weight * loss;
}

// What the probabilities weigh in the gradient with the z-loss of lse, the log-sum-exp.
template <class C>
__device__ C weight_of_all(const InPlaceArgs& args, const Weights<C>& weights, C lse) {
  if (args.z_loss == 0) return weights.all;
  return weights.all + C(2 * args.z_loss) * lse * weights.spread;
}

// A sample's loss; `below`: the sum of spread[c] (largest - x[c]).
template <class T, class C>
__device__ void set_loss(const InPlaceArgs& args, int64_t sample, const Weights<C>& weights,
                         C picked, C largest, C log_sum, C below) {
  C loss = product(weights.loss, C((largest - picked) + log_sum));
  if (args.total) loss += below + *static_cast<const C*>(args.total) * log_sum;
  const C lse = largest + log_sum;
  if (args.z_loss != 0) loss += C(args.z_loss) * lse * lse;
  static_cast<C*>(args.losses)[sample] = loss;
}

// The largest number of a pack.
template <class T, int N>
__device__ Compute<T> largest_of(const Pack<T, N>& pack) {
  if constexpr (sizeof(T) == 2 && N == 8) {
    const auto pair = [&](int k) { return typename PairOf<T>::type{pack.v[k], pack.v[k + 1]}; };
    const auto m = __hmax2(__hmax2(pair(0), pair(2)), __hmax2(pair(4), pair(6)));
    return larger(widen(m.x), widen(m.y));
  } else {
    Compute<T> m = widen(pack.v[0]);
#pragma unroll
    for (int k = 1; k < N; ++k) m = larger(m, widen(pack.v[k]));
    return m;
  }
}

// Rows -----------------------------------------------------------------------------------------

// One row, of which each thread takes every blockDim.x-th pack of N scores.
template <class T, int N, bool kSpread>
struct Row {
  using C = Compute<T>;
  using P = Pack<T, N>;

  P* scores;
  int packs;
  const C* spread;

  // Adds the exponentials of a pack to the thread's sum.
  static __device__ void add(LogSum<C>& s, const P& v) {
    const C m = largest_of(v);
    if (m > s.maximum) {
      s.sum = s.sum * ExpBelow<T>(m)(s.maximum);
      s.maximum = m;
    }
    if (m == lowest<C>()) return;  // probabilities of 0
    const ExpBelow<T> below(s.maximum);
    C sum = C(0);
#pragma unroll
    for (int k = 0; k < N; ++k) sum += below(widen(v.v[k]));
    s.sum += sum;
  }
  // The sum of spread[c] (largest - x[c]).
  __device__ C below(C largest) const {
    C result = C(0);
    for (int i = threadIdx.x; i < packs; i += blockDim.x) {
      const P v = scores[i];
#pragma unroll
      for (int k = 0; k < N; ++k) result += product(spread[i * N + k], C(largest - widen(v.v[k])));
    }
    return result;
  }

  __device__ P gradient(const P& v, int i, C largest, C all, C of_spread, int label,
                        C of_label) const {
    const ExpBelow<T> below(largest);
    C g[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      g[k] = below(widen(v.v[k])) * all;
      if constexpr (kSpread) g[k] -= spread[i * N + k] * of_spread;
    }
    if (unsigned(label - i * N) < unsigned(N)) {
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (i * N + k == label) g[k] -= of_label;
    }
    return narrow<T>(g);
  }
};

// The maximum and the sum of all threads.
template <class T, class C>
__device__ LogSum<C> sum_of_block(const LogSum<C>& s, C* shared) {
  LogSum<C> all;
  all.maximum = block_reduce(s.maximum, MaxOp(), shared);
  const C scaled = s.maximum == lowest<C>() ? s.sum : s.sum * ExpBelow<T>(all.maximum)(s.maximum);
  all.sum = block_reduce(scaled, AddOp(), shared);
  return all;
}

// Copies of the next row, of which each thread has up to kAhead under way. What has come is added
// to the sum of that row at once, so that nothing is left to do when the last copy comes.
template <class T, int N, bool kSpread>
struct NextRow {
  using R = Row<T, N, kSpread>;
  using P = typename R::P;
  static constexpr int kAhead = 3;

  P* kept;
  const P* from;  // null: there is none
  LogSum<Compute<T>> sum{};
  int next = threadIdx.x;  // the pack to be added

  // Copies pack i into its place, where the thread wrote or read last.
  __device__ void copy(int i) {
    if (from == nullptr) return;
    copy_ahead(kept + i, from + i);
    end_group_of_copies();
    if (i < next + kAhead * int(blockDim.x)) return;
    wait_for_all_but<kAhead>();
    add();
  }
  __device__ void finish(int packs) {
    if (from == nullptr) return;
    wait_for_copies();
    while (next < packs) add();
  }

 private:
  __device__ void add() {
    R::add(sum, kept[next]);
    next += blockDim.x;
  }
};

// A block for each row; the blocks take turns, from the last row on: what a product wrote last may
// still be in the cache. kKeeps: a row is read once and kept in shared memory.
template <class T, int N, bool kSpread, bool kKeeps>
__global__ void __launch_bounds__(kMostThreads) rows_kernel(InPlaceArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using P = Pack<T, N>;
  __shared__ C shared[32];
  P* const kept = reinterpret_cast<P*>(dynamic_shared());
  Row<T, N, kSpread> row{kept, int(args.classes / N), static_cast<const C*>(args.spread)};
  const auto scores_of = [&](int64_t sample) {
    return sample >= 0 ? reinterpret_cast<P*>(static_cast<T*>(args.x) + sample * args.classes)
                       : nullptr;
  };
  const int64_t last = args.outer - 1 - blockIdx.x;
  LogSum<C> seen;
  if constexpr (kKeeps) {
    NextRow<T, N, kSpread> first{kept, scores_of(last)};
    for (int i = threadIdx.x; i < row.packs; i += blockDim.x) first.copy(i);
    first.finish(row.packs);
    seen = first.sum;
  }
  for (int64_t sample = last; sample >= 0; sample -= gridDim.x) {
    P* const x = scores_of(sample);
    if constexpr (!kKeeps) {
      row.scores = x;
      seen = {};
      for (int i = threadIdx.x; i < row.packs; i += blockDim.x) row.add(seen, x[i]);
    }
    const int label = args.t[sample];
    const bool ignored = label == args.ignore_label;
    const bool known = label >= 0 && label < args.labels;
    const Weights<C> weights = weights_of<T>(args, sample);
    LogSum<C> s;
    C all = C(0);
    if (!ignored) {  // the same in all threads
      C picked = not_a_number<C>(), below = C(0);
      if (threadIdx.x == 0 && known) picked = widen(reinterpret_cast<const T*>(x)[label]);
      s = sum_of_block<T>(seen, shared);
      if constexpr (kSpread) below = block_reduce(row.below(s.maximum), AddOp(), shared);
      const C log_sum = log_of(s.sum);
      if (threadIdx.x == 0) set_loss<T>(args, sample, weights, picked, s.maximum, log_sum, below);
      all = weight_of_all(args, weights, C(s.maximum + log_sum)) / s.sum;
      __syncthreads();  // the label's score has been read
    } else if (threadIdx.x == 0) {
      static_cast<C*>(args.losses)[sample] = C(0);
    }
    NextRow<T, N, kSpread> next{kept, kKeeps ? scores_of(sample - gridDim.x) : nullptr};
#pragma unroll 2
    for (int i = threadIdx.x; i < row.packs; i += blockDim.x) {
      if (!args.losses_only) {
        P g{};
        if (!ignored)
          g = row.gradient(row.scores[i], i, s.maximum, all, weights.spread, label, weights.label);
        x[i] = g;
      }
      if constexpr (kKeeps) next.copy(i);
    }
    if constexpr (kKeeps) {
      next.finish(row.packs);
      seen = next.sum;
    }
  }
}

// A thread for each sample whose classes are `inner` elements apart.
template <class T>
__global__ void __launch_bounds__(kThreads) columns_kernel(InPlaceArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const C* spread = static_cast<const C*>(args.spread);
  const int64_t samples = args.outer * args.inner, step = args.inner;
  for (int64_t sample = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; sample < samples;
       sample += int64_t(gridDim.x) * blockDim.x) {
    T* x = static_cast<T*>(args.x) + sample / step * args.classes * step + sample % step;
    const int32_t label = args.t[sample];
    if (label == args.ignore_label) {
      static_cast<C*>(args.losses)[sample] = C(0);
      if (args.losses_only) continue;
      for (int64_t c = 0; c < args.classes; ++c) x[c * step] = Narrow<T>::from(C(0));
      continue;
    }
    LogSum<C> s;
    for (int64_t c = 0; c < args.classes; ++c) s.add(widen(x[c * step]));
    C below = C(0);
    if (spread)
      for (int64_t c = 0; c < args.classes; ++c)
        below += product(spread[c], C(s.maximum - widen(x[c * step])));
    const bool known = label >= 0 && label < args.labels;
    const C picked = known ? C(widen(x[label * step])) : not_a_number<C>();
    const Weights<C> weights = weights_of<T>(args, sample);
    const C log_sum = log_of(s.sum);
    set_loss<T>(args, sample, weights, picked, s.maximum, log_sum, below);
    if (args.losses_only) continue;
    const C all = weight_of_all(args, weights, C(s.maximum + log_sum)) / s.sum;
    for (int64_t c = 0; c < args.classes; ++c) {
      C g = exp_of(widen(x[c * step]) - s.maximum) * all;
      if (c == label) g -= weights.label;
      if (spread) g -= spread[c] * weights.spread;
      x[c * step] = Narrow<T>::from(g);
    }
  }
}

// One block each -------------------------------------------------------------------------------

template <class T>
__global__ void __launch_bounds__(kMostThreads) count_labels_kernel(InPlaceArgs args) {
  wait_for_previous_kernel();
  __shared__ long long counts[32];
  const int64_t samples = args.outer * args.inner;
  long long count = 0;
  if (args.normalize)
    for (int64_t i = threadIdx.x; i < samples; i += blockDim.x)
      count += args.t[i] != args.ignore_label;
  count = block_reduce(count, AddOp(), counts);
  if (threadIdx.x == 0 && args.counted) *static_cast<Compute<T>*>(args.counted) = Compute<T>(count);
  if (!args.normalize) count = args.outer;
  if (threadIdx.x == 0) *static_cast<Compute<T>*>(args.divisor) = Compute<T>(count > 1 ? count : 1);
}

template <class T>
__global__ void __launch_bounds__(kMostThreads) sum_losses_kernel(InPlaceArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ double sums[32];
  const int64_t samples = args.outer * args.inner;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < samples; i += blockDim.x)
    sum += double(static_cast<const C*>(args.losses)[i]);
  sum = block_reduce(sum, AddOp(), sums);
  if (threadIdx.x != 0) return;
  if (args.divisor) sum /= double(*static_cast<const C*>(args.divisor));
  *static_cast<T*>(args.loss) = Narrow<T>::from(C(sum));
}

// Scaling --------------------------------------------------------------------------------------

// Packs of N elements; N is 1 where samples have their own factors.
template <class T, int N>
__global__ void __launch_bounds__(kThreads) scale_samples_kernel(ScaleSamplesArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using P = Pack<T, N>;
  const C expected = args.expected ? widen(*static_cast<const T*>(args.expected)) : C(1);
  const T* factors = static_cast<const T*>(args.factors);
  if (args.single && widen(factors[0]) == expected) return;
  P* x = static_cast<P*>(args.x);
  const int64_t packs = args.outer * args.classes * args.inner / N;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < packs;
       i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t sample =
        args.single ? 0 : i / (args.classes * args.inner) * args.inner + i % args.inner;
    const C factor = widen(factors[sample]);
    if (factor == expected) continue;
    P v = x[i];
#pragma unroll
    for (int k = 0; k < N; ++k) v.v[k] = Narrow<T>::from(widen(v.v[k]) * (factor / expected));
    x[i] = v;
  }
}

// Launches -------------------------------------------------------------------------------------

template <class T, int N, bool kSpread>
void launch_rows(const InPlaceArgs& args, int shared_memory, const Launch& launch) {
  const int64_t bytes = args.classes * int64_t(sizeof(T));
  const bool keeps = bytes + kOwnShared <= shared_memory;
  const int64_t fitting = keeps ? shared_memory / (bytes + kOwnShared) : 1;
  int threads = fitting == 1 ? kMostThreads : kMostThreads / 2;
  while (threads > 32 && args.classes / N < 2 * threads) threads /= 2;
  const int64_t running =
      fitting < kResidentThreads / threads ? fitting : kResidentThreads / threads;
  const int64_t most = running * launch.multiprocessors;
  const unsigned blocks = unsigned(args.outer < most ? args.outer : most);
  if (keeps)
    launch_with_shared<rows_kernel<T, N, kSpread, true>>(blocks, threads, int(bytes), launch, args);
  else
    launch_with_shared<rows_kernel<T, N, kSpread, false>>(blocks, threads, 0, launch, args);
}

template <class T, int N>
void launch_rows(const InPlaceArgs& args, int shared_memory, const Launch& launch) {
  if (args.spread)
    launch_rows<T, N, true>(args, shared_memory, launch);
  else
    launch_rows<T, N, false>(args, shared_memory, launch);
}

}  // namespace

void launch_count_labels(Float type, const InPlaceArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, launch_kernel<count_labels_kernel<T>>(1, kMostThreads, launch, args))
}

void launch_cross_entropy_in_place(Float type, const InPlaceArgs& args, int shared_memory,
                                   const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    if (args.inner > 1)
      launch_kernel<columns_kernel<T>>(loop_blocks(args.outer * args.inner, kThreads, launch),
                                       kThreads, launch, args);
    else if (args.aligned && args.classes % kPack<T> == 0)
      launch_rows<T, kPack<T>>(args, shared_memory, launch);
    else
      launch_rows<T, 1>(args, shared_memory, launch);
  })
}

void launch_sum_losses(Float type, const InPlaceArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, launch_kernel<sum_losses_kernel<T>>(1, kMostThreads, launch, args))
}

void launch_scale_samples(Float type, const ScaleSamplesArgs& args, const Launch& launch) {
  const int64_t size = args.outer * args.classes * args.inner;
  CATENA_FLOAT_SWITCH(type, {
    if (args.single && args.aligned && size % kPack<T> == 0)
      launch_kernel<scale_samples_kernel<T, kPack<T>>>(
          loop_blocks(size / kPack<T>, kThreads, launch), kThreads, launch, args);
    else
      launch_kernel<scale_samples_kernel<T, 1>>(loop_blocks(size, kThreads, launch), kThreads,
                                                launch, args);
  })
}

}  // namespace catena::gpu
