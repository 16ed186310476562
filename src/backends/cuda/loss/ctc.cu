// Connectionist temporal classification: one kernel forward, one backward, and before
// each a second one where there are many scores. A block goes through the steps of a sample; its
// threads share the positions of the path and the classes.
#include "backends/cuda/loss/ctc.h"

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/loss/grid_sum.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int64_t kMostBlocks = 65535;

// log(exp(a) + exp(b) + exp(c)).
template <class C>
__device__ C log_add(C a, C b, C c) {
  C most = a > b ? a : b;
  most = most > c ? most : c;
  if (most == lowest<C>()) return most;
  return most + log_of(exp_of(a - most) + exp_of(b - most) + exp_of(c - most));
}

// One sample of the call. All threads of the block make it.
template <class T>
struct Sample {
  using C = Compute<T>;
  const CtcArgs& args;
  int64_t i, steps, labels, positions;
  const int32_t* t;
  bool valid;

  __device__ Sample(const CtcArgs& a, int64_t sample) : args(a), i(sample) {
    steps = args.input_lengths ? args.input_lengths[i] : args.steps;
    labels = args.label_lengths ? args.label_lengths[i] : args.labels;
    positions = 2 * labels + 1;
    t = args.t + i * args.labels;
    valid = steps >= 0 && steps <= args.steps && labels >= 0 && labels <= args.labels;
    bool wrong = false;
    for (int64_t k = threadIdx.x; valid && k < labels; k += blockDim.x)
      wrong = wrong || t[k] < 0 || t[k] >= args.classes || t[k] == args.blank;
    if (__syncthreads_or(wrong)) valid = false;
  }

  __device__ int64_t row(int64_t step) const { return (step * args.batch + i) * args.classes; }
  __device__ const T* scores(int64_t step) const {
    return static_cast<const T*>(args.x) + row(step);
  }
  __device__ int64_t class_of(int64_t s) const { return s % 2 == 0 ? args.blank : t[s / 2]; }
  // Whether a path may go from position s - 2 to s.
  __device__ bool skips(int64_t s) const { return s % 2 == 1 && s > 1 && t[s / 2] != t[s / 2 - 1]; }
  __device__ C* alpha(int64_t step) const {
    return static_cast<C*>(args.alpha) + (i * args.steps + step) * args.positions;
  }
  __device__ C& largest(int64_t step) const {
    return static_cast<C*>(args.norms)[step * args.batch + i];
  }
  __device__ C& log_sum(int64_t step) const {
    return static_cast<C*>(args.norms)[(args.steps + step) * args.batch + i];
  }
  // The logarithm of the probability at a position.
  __device__ C emit(int64_t step, int64_t s) const {
    return (C(widen(scores(step)[class_of(s)])) - largest(step)) - log_sum(step);
  }
};

// Of row k * batch + i of the scores: one warp.
template <class T>
__device__ void normalize_row(const CtcArgs& args, int64_t row) {
  using C = Compute<T>;
  const int lane = threadIdx.x % 32;
  const T* x = static_cast<const T*>(args.x) + row * args.classes;
  C most = lowest<C>(), sum = C(0);
  for (int64_t c = lane; c < args.classes; c += 32) most = MaxOp()(most, C(widen(x[c])));
  most = warp_reduce(most, MaxOp());
  for (int64_t c = lane; c < args.classes; c += 32) sum += exp_of(widen(x[c]) - most);
  sum = warp_reduce(sum, AddOp());
  if (lane != 0) return;
  static_cast<C*>(args.norms)[row] = most;
  static_cast<C*>(args.norms)[args.steps * args.batch + row] = log_of(sum);
}

// The softmax multiplied by scale, or zeros.
template <class T>
__device__ void write_row(const CtcArgs& args, int64_t row, bool zero, Compute<T> scale) {
  using C = Compute<T>;
  const C* norms = static_cast<const C*>(args.norms);
  const C most = zero ? C(0) : norms[row];
  const C log_sum = zero ? C(0) : norms[args.steps * args.batch + row];
  const T* x = static_cast<const T*>(args.x) + row * args.classes;
  T* gx = static_cast<T*>(args.gx) + row * args.classes;
  for (int64_t c = threadIdx.x % 32; c < args.classes; c += 32)
    gx[c] = Narrow<T>::from(zero ? C(0) : exp_of((widen(x[c]) - most) - log_sum) * scale);
}

// What the gradient of the loss of sample i is multiplied by.
template <class T>
__device__ Compute<T> scale_of(const CtcArgs& args, int64_t i) {
  const T* gloss = static_cast<const T*>(args.gloss);
  return args.one_each ? Compute<T>(widen(gloss[i]))
                       : Compute<T>(widen(*gloss)) * Compute<T>(args.factor);
}

// Large scores are read by all of the GPU, before and after the paths.
constexpr int64_t kManyScores = int64_t(1) << 18;
__host__ __device__ inline bool has_many_scores(const CtcArgs& args) {
  return args.steps * args.batch * args.classes >= kManyScores;
}

template <class T>
__global__ void __launch_bounds__(kThreads) normalize_kernel(CtcArgs args) {
  wait_for_previous_kernel();
  for (int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32; row < args.steps * args.batch;
       row += int64_t(gridDim.x) * kWarps)
    normalize_row<T>(args, row);
}

template <class T>
__global__ void __launch_bounds__(kThreads) softmax_kernel(CtcArgs args) {
  wait_for_previous_kernel();
  for (int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32; row < args.steps * args.batch;
       row += int64_t(gridDim.x) * kWarps)
    write_row<T>(args, row, false, scale_of<T>(args, row % args.batch));
}

// Step after step. A thread's first position has its probability loaded one step ahead.
template <class T>
__device__ Compute<T> path_loss(const Sample<T>& sample) {
  using C = Compute<T>;
  const int64_t n = sample.positions;
  if (sample.steps == 0) return n == 1 ? C(0) : -lowest<C>();
  C ahead = threadIdx.x < n ? sample.emit(0, threadIdx.x) : C(0);
  for (int64_t k = 0; k < sample.steps; ++k) {
    const C* from = k > 0 ? sample.alpha(k - 1) : nullptr;
    C* to = sample.alpha(k);
    for (int64_t s = threadIdx.x; s < n; s += blockDim.x) {
      const C emitted = s < kThreads ? ahead : sample.emit(k, s);
      C before = s < 2 ? C(0) : lowest<C>();
      if (from)
        before = log_add(from[s], s > 0 ? from[s - 1] : lowest<C>(),
                         sample.skips(s) ? from[s - 2] : lowest<C>());
      to[s] = before + emitted;
    }
    if (threadIdx.x < n && k + 1 < sample.steps) ahead = sample.emit(k + 1, threadIdx.x);
    __syncthreads();
  }
  const C* last = sample.alpha(sample.steps - 1);
  return -log_add(last[n - 1], n > 1 ? last[n - 2] : lowest<C>(), lowest<C>());
}

template <class T>
__global__ void __launch_bounds__(kThreads) ctc_kernel(CtcArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  double sum = 0;
  for (int64_t i = blockIdx.x; i < args.batch; i += gridDim.x) {
    const Sample<T> sample(args, i);
    C loss = not_a_number<C>();
    if (sample.valid) {
      if (!has_many_scores(args)) {
        for (int64_t k = threadIdx.x / 32; k < sample.steps; k += kWarps)
          normalize_row<T>(args, k * args.batch + i);
        __syncthreads();
      }
      loss = path_loss(sample);
    }
    if (threadIdx.x != 0) continue;
    static_cast<C*>(args.losses)[i] = loss;
    if (args.one_each) static_cast<T*>(args.loss)[i] = Narrow<T>::from(loss);
    sum += double(loss);
  }
  if (args.one_each) return;
  grid_sum(sum, args.scratch, [&](double total) {
    *static_cast<T*>(args.loss) = Narrow<T>::from(C(total * args.factor));
  });
}

// next[k]: the next label equal to label k, or `labels`; complemented where an equal one is before
// it.
template <class T>
__device__ void link_labels(const Sample<T>& sample, int32_t* next) {
  for (int64_t k = threadIdx.x; k < sample.labels; k += blockDim.x) {
    const int32_t own = sample.t[k];
    int64_t after = k + 1, before = 0;
    while (after < sample.labels && sample.t[after] != own) ++after;
    while (sample.t[before] != own) ++before;
    next[k] = before < k ? ~int32_t(after) : int32_t(after);
  }
}

// The gradients of the classes on the path, in which posteriors of equal labels are added up in
// order: those of the blank by the first warp, those of a label by the thread of its first one.
template <class T>
__device__ void write_path(const Sample<T>& sample, int64_t k, const Compute<T>* posterior,
                           const int32_t* next, Compute<T> scale) {
  using C = Compute<T>;
  T* gx = static_cast<T*>(sample.args.gx) + sample.row(k);
  const auto write = [&](int64_t c, C sum) {
    const C p = exp_of((widen(sample.scores(k)[c]) - sample.largest(k)) - sample.log_sum(k));
    gx[c] = Narrow<T>::from((p - sum) * scale);
  };
  if (threadIdx.x < 32) {
    C sum = 0;
    for (int64_t s = 2 * threadIdx.x; s < sample.positions; s += 64) sum += posterior[s];
    sum = warp_reduce(sum, AddOp());
    if (threadIdx.x == 0) write(sample.args.blank, sum);
  }
  for (int64_t j = threadIdx.x; j < sample.labels; j += blockDim.x) {
    if (next[j] < 0) continue;
    C sum = 0;
    for (int64_t same = j; same < sample.labels; same = next[same] < 0 ? ~next[same] : next[same])
      sum += posterior[2 * same + 1];
    write(sample.t[j], sum);
  }
}

// beta: logarithms of the probability that a path goes on from a position, and ends. Two rows of
// beta and two of posteriors take turns, so that one barrier a step is enough.
template <class T>
__device__ void walk_back(const Sample<T>& sample, Compute<T> loss, Compute<T> scale) {
  using C = Compute<T>;
  const CtcArgs& args = sample.args;
  const int64_t n = sample.positions;
  C* rows = static_cast<C*>(args.rows) + sample.i * 4 * args.positions;
  int32_t* next = args.next + sample.i * args.labels;
  link_labels(sample, next);
  for (int64_t k = sample.steps - 1; k >= 0; --k) {
    C *beta = rows + k % 2 * args.positions, *after = rows + (k + 1) % 2 * args.positions;
    C* posterior = rows + (2 + k % 2) * args.positions;
    const bool is_last = k == sample.steps - 1;
    const auto go_on = [&](int64_t s) { return after[s] + sample.emit(k + 1, s); };
    for (int64_t s = threadIdx.x; s < n; s += blockDim.x) {
      C own = s + 2 < n ? lowest<C>() : C(0);
      if (!is_last)
        own = log_add(go_on(s), s + 1 < n ? go_on(s + 1) : lowest<C>(),
                      s + 2 < n && sample.skips(s + 2) ? go_on(s + 2) : lowest<C>());
      beta[s] = own;
      posterior[s] = exp_of((sample.alpha(k)[s] + own) + loss);
    }
    __syncthreads();
    write_path(sample, k, posterior, next, scale);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) ctc_grad_kernel(CtcArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  for (int64_t i = blockIdx.x; i < args.batch; i += gridDim.x) {
    const Sample<T> sample(args, i);
    const C loss = static_cast<const C*>(args.losses)[i], scale = scale_of<T>(args, i);
    const bool flows = sample.valid && loss != -lowest<C>();
    for (int64_t k = threadIdx.x / 32; k < args.steps; k += kWarps) {
      const bool zero = !flows || k >= sample.steps;
      if (zero || !has_many_scores(args)) write_row<T>(args, k * args.batch + i, zero, scale);
    }
    __syncthreads();  // the path's classes are written again
    if (flows) walk_back(sample, loss, scale);
  }
}

}  // namespace

int ctc_blocks(const CtcArgs& args) {
  return int(args.batch < kMostBlocks ? args.batch : kMostBlocks);
}

void launch_ctc(Float type, const CtcArgs& args, int blocks, const Launch& launch) {
  const unsigned row_blocks = loop_blocks(args.steps * args.batch, kWarps, launch);
  CATENA_FLOAT_SWITCH(type, {
    if (has_many_scores(args))
      launch_kernel<normalize_kernel<T>>(row_blocks, kThreads, launch, args);
    launch_kernel<ctc_kernel<T>>(unsigned(blocks), kThreads, launch, args);
  })
}

void launch_ctc_grad(Float type, const CtcArgs& args, const Launch& launch) {
  const unsigned row_blocks = loop_blocks(args.steps * args.batch, kWarps, launch);
  CATENA_FLOAT_SWITCH(type, {
    if (has_many_scores(args)) launch_kernel<softmax_kernel<T>>(row_blocks, kThreads, launch, args);
    launch_kernel<ctc_grad_kernel<T>>(unsigned(ctc_blocks(args)), kThreads, launch, args);
  })
}

}  // namespace catena::gpu
