// Update rules, each one pass over parameters, gradients and states, made from the functors and
// rows that the CPU loops share; sums of squares by parameter; the search for gradients that are
// not finite; the loss scale.
//
// Step numbers from the host and step numbers read from the device go through the same expressions,
// so that a replayed graph gives the same bits as the eager step.
#include <type_traits>

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/optimizer/optimizer.h"

#define CATENA_FN __device__ __forceinline__

namespace catena {
namespace m {
namespace {
CATENA_FN float sqrt(float v) { return ::sqrtf(v); }
CATENA_FN double sqrt(double v) { return ::sqrt(v); }
// b^t for an integer t by repeated squaring: few roundings, and far cheaper than pow() in double.
CATENA_FN double power(double b, double t) {
  double result = 1;
  for (unsigned long long n = (unsigned long long)t; n; n >>= 1) {
    if (n & 1) result *= b;
    b *= b;
  }
  return result;
}
}  // namespace
}  // namespace m
}  // namespace catena

#include "device/loss_scale.h"
#include "device/optimizer_rules.h"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

__device__ double read(const StepNumber& n) {
  if (n.float_address) return *n.float_address;
  if (n.integer_address) return double(*n.integer_address);
  return n.value;
}

// The numbers of the step in the compute type of the rule, calculated once for each block.
template <class C, class Rule>
struct Numbers {
  C scale, decay, constants[Rule::kConstants];
};

template <class C, class Rule>
__device__ void prepare(const OptimizerArgs& args, Numbers<C, Rule>& n) {
  double constants[Rule::kConstants];
  double t = 0;
  if (Rule::kReadsStep) t = args.counter ? args.counter->updates + 1 : read(args.step);
  Rule::prepare(read(args.learning_rate), args.numbers, t, constants);
  for (int k = 0; k < Rule::kConstants; ++k) n.constants[k] = C(constants[k]);
  n.scale = C(read(args.gradient_scale));
  n.decay = C(args.weight_decay);
}

// The factors of the segment [begin, end) of an arena.
template <class C>
struct Factors {
  C rate = 1, decay = 1;
  bool frozen = false;
  int64_t begin = 0, end = INT64_MAX;
};

// The segment that an element is in.
__device__ inline int64_t segment_at(const SegmentArgs& segments, int64_t element) {
  int64_t low = 0, high = segments.count;  // starts[low] <= element < starts[high]
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (segments.starts[middle] <= element ? low : high) = middle;
  }
  return low;
}

template <class Rule, class C>
__device__ Factors<C> factors_of(const OptimizerArgs& args, int64_t element) {
  const SegmentArgs& segments = args.segments;
  const int64_t low = segment_at(segments, element);
  const double* factors = segments.factors + 3 * low;
  double rate = factors[0];
  if constexpr (Rule::kNeedsNorms) {
    // Gradients are those in memory; steps follow from scaled ones.
    const double factor = Rule::kNormsOfSteps ? 1 : ::fabs(read(args.gradient_scale));
    rate *= Rule::ratio(args.numbers, ::sqrt(segments.squares[low]),
                        ::sqrt(segments.squares[segments.count + low]) * factor);
  }
  return {C(rate), C(factors[1]), factors[2] != 0, segments.starts[low], segments.starts[low + 1]};
}

// The value from which the rule starts: the master copy, unless other code has written the
// parameter since.
template <class T>
__device__ __forceinline__ float starting_value(float master, T parameter) {
  const T rounded = Narrow<T>::from(master);
  const bool same = reinterpret_cast<const unsigned short&>(rounded) ==
                    reinterpret_cast<const unsigned short&>(parameter);
  return same ? master : widen(parameter);
}

// Counts this update, once for each launch, after all blocks have read the count.
template <class Rule>
__device__ void advance(UpdateCounter* counter) {
  if (!Rule::kReadsStep) {  // the rule does not read the count
    if (blockIdx.x == 0) counter->updates += 1;
    return;
  }
  __threadfence();
  if (atomicAdd(&counter->arrived, 1u) + 1 < gridDim.x) return;
  counter->arrived = 0;
  counter->updates += 1;
}

// N adjacent elements of a call, in registers.
template <class T, class Rule, int N>
struct Elements {
  using C = Compute<T>;
  static constexpr bool kHasMaster = sizeof(T) == 2;
  static constexpr int kStates = Rule::kStates;
  Pack<T, N> p, g;
  Pack<float, kHasMaster ? N : 1> master;
  Pack<C, N> states[kStates > 0 ? kStates : 1];

  __device__ __forceinline__ void load(const OptimizerArgs& args, int64_t i) {
    p = static_cast<const Pack<T, N>*>(args.parameter)[i];
    g = static_cast<const Pack<T, N>*>(args.gradient)[i];
    if constexpr (kHasMaster) master = reinterpret_cast<const Pack<float, N>*>(args.master)[i];
#pragma unroll
    for (int j = 0; j < kStates; ++j) states[j] = static_cast<const Pack<C, N>*>(args.states[j])[i];
  }
  // The value of element k from which the rule starts.
  __device__ __forceinline__ C start(int k) const {
    if constexpr (kHasMaster)
      return starting_value(master.v[k], p.v[k]);
    else
      return widen(p.v[k]);
  }
  __device__ __forceinline__ void update(const Numbers<C, Rule>& n, const Factors<C>& f) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      C value = start(k), s[kStates > 0 ? kStates : 1];
#pragma unroll
      for (int j = 0; j < kStates; ++j) s[j] = states[j].v[k];
      const C gradient = rules::decayed(C(widen(g.v[k])), n.scale, n.decay * f.decay, value);
      Rule::step(n.constants, f.rate, f.decay, gradient, value, s);
#pragma unroll
      for (int j = 0; j < kStates; ++j) states[j].v[k] = s[j];
      if constexpr (kHasMaster) master.v[k] = value;
      p.v[k] = Narrow<T>::from(value);
    }
  }
  __device__ __forceinline__ void store(const OptimizerArgs& args, int64_t i) const {
    static_cast<Pack<T, N>*>(args.parameter)[i] = p;
    if constexpr (kHasMaster) reinterpret_cast<Pack<float, N>*>(args.master)[i] = master;
#pragma unroll
    for (int j = 0; j < kStates; ++j) static_cast<Pack<C, N>*>(args.states[j])[i] = states[j];
    if constexpr (std::is_same_v<T, float>) {
      if (args.low == nullptr) return;
      if (args.low_is_half)
        store_low<__half>(args, i);
      else
        store_low<__nv_bfloat16>(args, i);
    }
  }
  template <class L>
  __device__ __forceinline__ void store_low(const OptimizerArgs& args, int64_t i) const {
    Pack<L, N> low;
#pragma unroll
    for (int k = 0; k < N; ++k) low.v[k] = Narrow<L>::from(p.v[k]);
    static_cast<Pack<L, N>*>(args.low)[i] = low;
  }
};

template <int N, class T, class Rule>
__device__ __forceinline__ void update_at(const OptimizerArgs& args,
                                          const Numbers<Compute<T>, Rule>& n,
                                          Factors<Compute<T>>& f, int64_t i) {
  const int64_t element = args.first + i * N;
  if (args.segments.starts && (element < f.begin || element >= f.end))
    f = factors_of<Rule, Compute<T>>(args, element);
  if (f.frozen) return;
  Elements<T, Rule, N> elements;
  elements.load(args, i);
  elements.update(n, f);
  elements.store(args, i);
}

template <class T, class Rule, int N>
__global__ void __launch_bounds__(kThreads) optimizer_kernel(OptimizerArgs args) {
  wait_for_previous_kernel();
  if (args.skip && *args.skip != 0) return;
  __shared__ Numbers<Compute<T>, Rule> numbers;
  if (threadIdx.x == 0) prepare(args, numbers);
  __syncthreads();
  const Numbers<Compute<T>, Rule> n = numbers;
  Factors<Compute<T>> factors;
  if (args.segments.starts) factors.end = 0;  // none is known yet
  const int64_t packs = args.count / N;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  const int64_t first = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  for (int64_t i = first; i < packs; i += stride) update_at<N, T>(args, n, factors, i);
  const int64_t tail = packs * N + first;
  if (N > 1 && tail < args.count) update_at<1, T>(args, n, factors, tail);
  if (args.counter && args.counts && threadIdx.x == 0) advance<Rule>(args.counter);
}

// Elements of a pack: 16 bytes of the rule's compute type.
template <class T>
constexpr int kElements = 16 / sizeof(Compute<T>);

template <class T, class Rule>
void launch_rule(const OptimizerArgs& args, const Launch& launch) {
  const int64_t packs = (args.count + kElements<T> - 1) / kElements<T>;
  const int64_t wanted = ((args.aligned ? packs : args.count) + kThreads - 1) / kThreads;
  const int64_t most = int64_t(launch.multiprocessors) * 8;
  // Without elements one block still counts the update.
  const int blocks = wanted == 0 ? 1 : int(wanted < most ? wanted : most);
  if (args.aligned)
    launch_kernel<optimizer_kernel<T, Rule, kElements<T>>>(blocks, kThreads, launch, args);
  else
    launch_kernel<optimizer_kernel<T, Rule, 1>>(blocks, kThreads, launch, args);
}

template <class Rule>
void launch_dtype(Float type, const OptimizerArgs& args, const Launch& launch){
    CATENA_FLOAT_SWITCH(type, { launch_rule<T, Rule>(args, launch); })}

// Sums of squares -----------------------------------------------------------------------------

// The sum over the block, for its first thread. Always in the same order.
__device__ double sum_of_block(double value) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return threadIdx.x == 0 ? sums[0] : 0;
}

// A block for each piece of a segment; of its elements those count that there are values of.
template <class T>
__global__ void __launch_bounds__(kThreads) piece_squares_kernel(SquaresArgs args) {
  wait_for_previous_kernel();
  const T* values = static_cast<const T*>(args.values);
  const int64_t from = args.pieces[blockIdx.x] - args.first;
  const int64_t to = args.pieces[blockIdx.x + 1] - args.first;
  const int64_t end = to < args.count ? to : args.count;
  double sum = 0;
  for (int64_t i = (from > 0 ? from : 0) + threadIdx.x; i < end; i += kThreads) {
    const double v = widen(values[i]);
    sum += v * v;
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) args.partial[blockIdx.x] = sum;
}

// The same of what a rule is about to do: a block for each piece, which sums both arrays.
template <class T, class Rule>
__global__ void __launch_bounds__(kThreads)
    step_squares_kernel(OptimizerArgs args, SquaresArgs squares) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ Numbers<C, Rule> n;
  __shared__ C decay;  // factor of the piece's segment
  if (threadIdx.x == 0) {
    prepare(args, n);
    decay = C(args.segments.factors[3 * segment_at(args.segments, squares.pieces[blockIdx.x]) + 1]);
  }
  __syncthreads();
  const int64_t from = squares.pieces[blockIdx.x] - squares.first;
  const int64_t to = squares.pieces[blockIdx.x + 1] - squares.first;
  const int64_t end = to < squares.count ? to : squares.count;
  double values = 0, steps = 0;
  for (int64_t i = (from > 0 ? from : 0) + threadIdx.x; i < end; i += kThreads) {
    Elements<T, Rule, 1> e;
    e.load(args, i);
    C s[Rule::kStates];
    for (int j = 0; j < Rule::kStates; ++j) s[j] = e.states[j].v[0];
    const C value = e.start(0);
    const C g = rules::decayed(C(widen(e.g.v[0])), n.scale, n.decay * decay, value);
    const double step = Rule::direction(n.constants, decay, g, value, s);
    values += double(value) * value;
    steps += step * step;
  }
  values = sum_of_block(values);
  __syncthreads();  // the second sum reuses the shared memory of the first
  steps = sum_of_block(steps);
  if (threadIdx.x == 0) {
    squares.partial[blockIdx.x] = values;
    squares.partial[squares.piece_count + blockIdx.x] = steps;
  }
}

template <class Rule>
void launch_step_squares_of(Float type, const OptimizerArgs& args, const SquaresArgs& squares,
                            const Launch& launch) {
  if constexpr (Rule::kNormsOfSteps)
    CATENA_FLOAT_SWITCH(type, {
      launch_kernel<step_squares_kernel<T, Rule>>(unsigned(squares.piece_count), kThreads, launch,
                                                  args, squares);
    })
}

// A block for each segment.
__global__ void __launch_bounds__(kThreads) segment_squares_kernel(SquaresArgs args) {
  wait_for_previous_kernel();
  const int64_t end = args.first_piece[blockIdx.x + 1];
  double sum = 0;
  for (int64_t i = args.first_piece[blockIdx.x] + threadIdx.x; i < end; i += kThreads)
    sum += args.partial[i];
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) args.sums[blockIdx.x] = sum;
}

// Values that are not finite ------------------------------------------------------------------

// Infinity and NaN: all bits of the exponent are ones.
__device__ inline bool is_nonfinite(float v) {
  return (__float_as_uint(v) & 0x7f800000u) == 0x7f800000u;
}
__device__ inline bool is_nonfinite(double v) {
  return (unsigned(__double2hiint(v)) & 0x7ff00000u) == 0x7ff00000u;
}

template <class T, int N>
__global__ void __launch_bounds__(kThreads)
    nonfinite_kernel(const T* values, int64_t count, double* found) {
  wait_for_previous_kernel();
  const int64_t packs = count / N;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  const int64_t first = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  bool any = false;
  for (int64_t i = first; i < packs; i += stride) {
    const Pack<T, N> pack = reinterpret_cast<const Pack<T, N>*>(values)[i];
#pragma unroll
    for (int k = 0; k < N; ++k) any |= is_nonfinite(widen(pack.v[k]));
  }
  const int64_t tail = packs * N + first;
  if (N > 1 && tail < count) any |= is_nonfinite(widen(values[tail]));
  if (__syncthreads_or(any) && threadIdx.x == 0) *found = 1;  // every block stores the same value
}

template <class T>
void launch_nonfinite(const T* values, int64_t count, double* found, const Launch& launch) {
  if ((reinterpret_cast<uintptr_t>(values) & 15) == 0)
    launch_kernel<nonfinite_kernel<T, kPack<T>>>(
        loop_blocks(count, int64_t(kThreads) * kPack<T>, launch, 8), kThreads, launch, values,
        count, found);
  else
    launch_kernel<nonfinite_kernel<T, 1>>(loop_blocks(count, kThreads, launch, 8), kThreads, launch,
                                          values, count, found);
}

__global__ void loss_scale_kernel(LossScaleArgs args) {
  wait_for_previous_kernel();
  auto& state = *reinterpret_cast<rules::LossScaleState*>(args.state);
  rules::advance_loss_scale(state,
                            {args.growth, args.backoff, args.least, args.most, args.interval});
  *args.scale32 = float(state.scale);
}

}  // namespace

void launch_optimizer(int rule, Float type, const OptimizerArgs& args, const Launch& launch) {
  if (args.count == 0 && !args.counter) return;
  int id = 0;
#define CATENA_RULE(functor, ...) \
  if (rule == id++) return launch_dtype<rules::functor>(type, args, launch);
#include "catena/kernels/detail/optimizer_rules.def"
#undef CATENA_RULE
}

void launch_segment_squares(Float type, const SquaresArgs& args, const Launch& launch) {
  if (args.piece_count > 0)
    CATENA_FLOAT_SWITCH(type, {
      launch_kernel<piece_squares_kernel<T>>(unsigned(args.piece_count), kThreads, launch, args);
    })
  launch_kernel<segment_squares_kernel>(unsigned(args.segment_count), kThreads, launch, args);
}

void launch_step_squares(int rule, Float type, const OptimizerArgs& args,
                         const SquaresArgs& squares, const Launch& launch) {
  int id = 0;
  if (squares.piece_count > 0) {
#define CATENA_RULE(functor, ...) \
  if (rule == id++) launch_step_squares_of<rules::functor>(type, args, squares, launch);
#include "catena/kernels/detail/optimizer_rules.def"
#undef CATENA_RULE
  }
  for (int k = 0; k < 2; ++k) {
    SquaresArgs array = squares;
    array.partial += k * squares.piece_count;
    array.sums += k * squares.segment_count;
    launch_kernel<segment_squares_kernel>(unsigned(squares.segment_count), kThreads, launch, array);
  }
}

void launch_find_nonfinite(Float type, const void* values, int64_t count, double* found,
                           const Launch& launch) {
  if (count == 0) return;
  CATENA_FLOAT_SWITCH(type,
                      { launch_nonfinite(static_cast<const T*>(values), count, found, launch); })
}

void launch_advance_loss_scale(const LossScaleArgs& args, const Launch& launch) {
  launch_kernel<loss_scale_kernel>(1, 1, launch, args);
}

}  // namespace catena::gpu
