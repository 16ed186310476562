// The kernel of update rules: one pass over parameters, gradients and states, made from the
// functors that the CPU loops share.
//
// Step numbers from the host and step numbers read from the device go through the same expressions,
// so that a replayed graph gives the same bits as the eager step.
#pragma once

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

// How a call stores parameters and states.
template <class Value, class State, bool kMaster>
struct Stored {
  using T = Value;
  using S = State;
  static constexpr bool kHasMaster = kMaster;
};
template <class T>
using StoredWide = Stored<T, Compute<T>, sizeof(T) == 2>;

// N adjacent elements of a call, in registers.
template <class Form, class Rule, int N>
struct Elements {
  using T = typename Form::T;
  using S = typename Form::S;
  using C = Compute<T>;
  static constexpr bool kHasMaster = Form::kHasMaster;
  static constexpr int kStates = Rule::kStates;
  Pack<T, N> p, g;
  Pack<float, kHasMaster ? N : 1> master;
  Pack<S, N> states[kStates > 0 ? kStates : 1];

  __device__ __forceinline__ void load(const OptimizerArgs& args, int64_t i) {
    p = static_cast<const Pack<T, N>*>(args.parameter)[i];
    g = static_cast<const Pack<T, N>*>(args.gradient)[i];
    if constexpr (kHasMaster) master = reinterpret_cast<const Pack<float, N>*>(args.master)[i];
#pragma unroll
    for (int j = 0; j < kStates; ++j) states[j] = static_cast<const Pack<S, N>*>(args.states[j])[i];
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
      for (int j = 0; j < kStates; ++j) s[j] = widen(states[j].v[k]);
      const C gradient = rules::decayed(C(widen(g.v[k])), n.scale, n.decay * f.decay, value);
      Rule::step(n.constants, f.rate, f.decay, gradient, value, s);
#pragma unroll
      for (int j = 0; j < kStates; ++j) states[j].v[k] = Narrow<S>::from(s[j]);
      if constexpr (kHasMaster) master.v[k] = value;
      p.v[k] = Narrow<T>::from(value);
    }
  }
  __device__ __forceinline__ void store(const OptimizerArgs& args, int64_t i) const {
    static_cast<Pack<T, N>*>(args.parameter)[i] = p;
    if constexpr (kHasMaster) reinterpret_cast<Pack<float, N>*>(args.master)[i] = master;
#pragma unroll
    for (int j = 0; j < kStates; ++j) static_cast<Pack<S, N>*>(args.states[j])[i] = states[j];
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

template <int N, class Form, class Rule, class C>
__device__ __forceinline__ void update_at(const OptimizerArgs& args, const Numbers<C, Rule>& n,
                                          Factors<C>& f, int64_t i) {
  const int64_t element = args.first + i * N;
  if (args.segments.starts && (element < f.begin || element >= f.end))
    f = factors_of<Rule, C>(args, element);
  if (f.frozen) return;
  Elements<Form, Rule, N> elements;
  elements.load(args, i);
  elements.update(n, f);
  elements.store(args, i);
}

template <class Form, class Rule, int N>
__global__ void __launch_bounds__(kThreads) optimizer_kernel(OptimizerArgs args) {
  wait_for_previous_kernel();
  using C = Compute<typename Form::T>;
  if (args.skip && *args.skip != 0) return;
  __shared__ Numbers<C, Rule> numbers;
  if (threadIdx.x == 0) prepare(args, numbers);
  __syncthreads();
  const Numbers<C, Rule> n = numbers;
  Factors<C> factors;
  if (args.segments.starts) factors.end = 0;  // none is known yet
  const int64_t packs = args.count / N;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  const int64_t first = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  for (int64_t i = first; i < packs; i += stride) update_at<N, Form>(args, n, factors, i);
  const int64_t tail = packs * N + first;
  if (N > 1 && tail < args.count) update_at<1, Form>(args, n, factors, tail);
  if (args.counter && args.counts && threadIdx.x == 0) advance<Rule>(args.counter);
}

// Elements of a pack: 16 bytes of the rule's compute type.
template <class T>
constexpr int kElements = 16 / sizeof(Compute<T>);

template <class Form, class Rule>
void launch_rule(const OptimizerArgs& args, const Launch& launch) {
  constexpr int kPacked = kElements<typename Form::T>;
  const int64_t packs = (args.count + kPacked - 1) / kPacked;
  const int64_t wanted = ((args.aligned ? packs : args.count) + kThreads - 1) / kThreads;
  const int64_t most = int64_t(launch.multiprocessors) * 8;
  // Without elements one block still counts the update.
  const int blocks = wanted == 0 ? 1 : int(wanted < most ? wanted : most);
  if (args.aligned)
    launch_kernel<optimizer_kernel<Form, Rule, kPacked>>(blocks, kThreads, launch, args);
  else
    launch_kernel<optimizer_kernel<Form, Rule, 1>>(blocks, kThreads, launch, args);
}

}  // namespace
}  // namespace catena::gpu
