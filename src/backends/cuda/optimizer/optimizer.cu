// Update rules, each one pass over parameters, gradients and states, made from the functors and
// rows that the CPU loops share; the search for gradients that are not finite; the loss scale.
//
// Step numbers from the host and step numbers read from the device go through the same expressions,
// so that a replayed graph gives the same bits as the eager step.
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
  __device__ __forceinline__ void update(const Numbers<C, Rule>& n) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      C value = widen(p.v[k]), s[kStates > 0 ? kStates : 1];
      if constexpr (kHasMaster) value = starting_value(master.v[k], p.v[k]);
#pragma unroll
      for (int j = 0; j < kStates; ++j) s[j] = states[j].v[k];
      const C gradient = rules::decayed(C(widen(g.v[k])), n.scale, n.decay, value);
      Rule::step(n.constants, gradient, value, s);
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
  }
};

template <int N, class T, class Rule>
__device__ __forceinline__ void update_at(const OptimizerArgs& args,
                                          const Numbers<Compute<T>, Rule>& n, int64_t i) {
  Elements<T, Rule, N> elements;
  elements.load(args, i);
  elements.update(n);
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
  const int64_t packs = args.count / N;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  const int64_t first = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  for (int64_t i = first; i < packs; i += stride) update_at<N, T>(args, n, i);
  const int64_t tail = packs * N + first;
  if (N > 1 && tail < args.count) update_at<1, T>(args, n, tail);
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
