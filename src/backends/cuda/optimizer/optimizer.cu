// Update rules in the usual format, sums of squares by parameter, the search for gradients that are
// not finite, and the loss scale.
#include "backends/cuda/optimizer/rule_kernel.cuh"
#include "device/loss_scale.h"

namespace catena::gpu {
namespace {

template <class Rule>
void launch_dtype(Float type, const OptimizerArgs& args, const Launch& launch){
    CATENA_FLOAT_SWITCH(type, { launch_rule<StoredWide<T>, Rule>(args, launch); })}

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
    Elements<StoredWide<T>, Rule, 1> e;
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

bool launch_optimizer(int rule, RuleFormat format, Float type, const OptimizerArgs& args,
                      const Launch& launch) {
  if (args.count == 0 && !args.counter) return true;
  if (format != RuleFormat::kWide) return launch_format(rule, format, type, args, launch);
  int id = 0;
#define CATENA_RULE(functor, ...) \
  if (rule == id++) launch_dtype<rules::functor>(type, args, launch);
#include "catena/kernels/detail/optimizer_rules.def"
#undef CATENA_RULE
  return true;
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
