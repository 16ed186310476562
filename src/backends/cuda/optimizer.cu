// SGD, momentum SGD and Adam, each one pass over parameters, gradients and states.
//
// Step numbers that come from the host and those read from the device take the same path through
// the same expressions, so that a replayed graph gives the bits of the eager step.
#include "backends/cuda/float_access.cuh"
#include "backends/cuda/optimizer.h"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

__device__ double read(const StepNumber& n) {
  if (n.float_address) return *n.float_address;
  if (n.integer_address) return double(*n.integer_address);
  return n.value;
}

// b^t for a whole t by repeated squaring: few roundings, and far cheaper than pow() in double.
__device__ double whole_power(double b, double t) {
  double result = 1;
  for (unsigned long long n = (unsigned long long)t; n; n >>= 1) {
    if (n & 1) result *= b;
    b *= b;
  }
  return result;
}

// The rule's numbers in the type it computes in, worked out once a block.
template <class C>
struct Numbers {
  C rate, scale, decay, beta1, rest1, rest2, epsilon;
};

template <class C, Rule kRule>
__device__ void prepare(const OptimizerArgs& args, Numbers<C>& n) {
  double rate = read(args.learning_rate);
  if (kRule == Rule::kAdam) {
    const double t = args.counter ? args.counter->updates + 1 : read(args.step);
    rate = rate * sqrt(1 - whole_power(args.beta2, t)) / (1 - whole_power(args.beta1, t));
  }
  n.rate = C(rate);
  n.scale = C(read(args.gradient_scale));
  n.decay = C(args.weight_decay);
  n.beta1 = C(args.beta1);
  n.rest1 = C(1 - args.beta1);
  n.rest2 = C(1 - args.beta2);
  n.epsilon = C(args.epsilon);
}

__device__ inline float root(float v) { return sqrtf(v); }
__device__ inline double root(double v) { return sqrt(v); }

template <class C, Rule kRule>
__device__ void update(const Numbers<C>& n, C g, C& p, C& s0, C& s1) {
  C gr = g * n.scale;
  if (n.decay != C(0)) gr = gr + n.decay * p;
  if (kRule == Rule::kSgd) {
    p = p - n.rate * gr;
  } else if (kRule == Rule::kMomentumSgd) {
    s0 = n.beta1 * s0 - n.rate * gr;
    p = p + s0;
  } else {
    s0 = s0 + n.rest1 * (gr - s0);
    s1 = s1 + n.rest2 * (gr * gr - s1);
    p = p - n.rate * s0 / (root(s1) + n.epsilon);
  }
}

// Counts this update, once in a launch and after all blocks have read the count.
template <Rule kRule>
__device__ void advance(UpdateCounter* counter) {
  if (kRule != Rule::kAdam) {  // nobody reads it
    if (blockIdx.x == 0) counter->updates += 1;
    return;
  }
  __threadfence();
  if (atomicAdd(&counter->arrived, 1u) + 1 < gridDim.x) return;
  counter->arrived = 0;
  counter->updates += 1;
}

template <class T, Rule kRule, int N>
__global__ void __launch_bounds__(kThreads) optimizer_kernel(OptimizerArgs args) {
  using C = Compute<T>;
  using P = Pack<T, N>;
  constexpr int kStates = kRule == Rule::kSgd ? 0 : kRule == Rule::kMomentumSgd ? 1 : 2;
  __shared__ Numbers<C> numbers;
  if (threadIdx.x == 0) prepare<C, kRule>(args, numbers);
  __syncthreads();
  auto* p = static_cast<T*>(args.parameter);
  auto* g = static_cast<const T*>(args.gradient);
  auto* s0 = static_cast<T*>(args.states[0]);
  auto* s1 = static_cast<T*>(args.states[1]);
  const int64_t packs = args.count / N;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  const int64_t first = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  const Numbers<C> n = numbers;
  for (int64_t i = first; i < packs; i += stride) {
    P vp = reinterpret_cast<P*>(p)[i], vg = reinterpret_cast<const P*>(g)[i], v0 = vp, v1 = vp;
    if (kStates > 0) v0 = reinterpret_cast<P*>(s0)[i];
    if (kStates > 1) v1 = reinterpret_cast<P*>(s1)[i];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      C cp = widen(vp.v[k]), c0 = widen(v0.v[k]), c1 = widen(v1.v[k]);
      update<C, kRule>(n, widen(vg.v[k]), cp, c0, c1);
      vp.v[k] = Narrow<T>::from(cp);
      v0.v[k] = Narrow<T>::from(c0);
      v1.v[k] = Narrow<T>::from(c1);
    }
    reinterpret_cast<P*>(p)[i] = vp;
    if (kStates > 0) reinterpret_cast<P*>(s0)[i] = v0;
    if (kStates > 1) reinterpret_cast<P*>(s1)[i] = v1;
  }
  const int64_t tail = packs * N + first;
  if (N > 1 && tail < args.count) {
    C cp = widen(p[tail]), c0 = C(0), c1 = C(0);
    if (kStates > 0) c0 = widen(s0[tail]);
    if (kStates > 1) c1 = widen(s1[tail]);
    update<C, kRule>(n, widen(g[tail]), cp, c0, c1);
    p[tail] = Narrow<T>::from(cp);
    if (kStates > 0) s0[tail] = Narrow<T>::from(c0);
    if (kStates > 1) s1[tail] = Narrow<T>::from(c1);
  }
  if (args.counter && threadIdx.x == 0) advance<kRule>(args.counter);
}

template <class T, Rule kRule>
void launch_rule(const OptimizerArgs& args, const Launch& launch) {
  const int64_t packs = (args.count + kPack<T> - 1) / kPack<T>;
  const int64_t wanted = ((args.aligned ? packs : args.count) + kThreads - 1) / kThreads;
  const int64_t most = int64_t(launch.multiprocessors) * 8;
  // One block without elements counts the update.
  const int blocks = wanted == 0 ? 1 : int(wanted < most ? wanted : most);
  if (args.aligned)
    optimizer_kernel<T, kRule, kPack<T>><<<blocks, kThreads, 0, launch.stream>>>(args);
  else
    optimizer_kernel<T, kRule, 1><<<blocks, kThreads, 0, launch.stream>>>(args);
}

}  // namespace

void launch_optimizer(Rule rule, Float type, const OptimizerArgs& args, const Launch& launch) {
  if (args.count == 0 && !args.counter) return;
  CATENA_FLOAT_SWITCH(type, {
    if (rule == Rule::kSgd)
      launch_rule<T, Rule::kSgd>(args, launch);
    else if (rule == Rule::kMomentumSgd)
      launch_rule<T, Rule::kMomentumSgd>(args, launch);
    else
      launch_rule<T, Rule::kAdam>(args, launch);
  })
}

}  // namespace catena::gpu
