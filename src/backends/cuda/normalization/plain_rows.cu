// Normalization of plain rows, forward: of float32, and of those that are channels.
#include "backends/cuda/normalization/plain_rows.cuh"

namespace catena::gpu {
namespace {

// What a kernel takes, by type: packs of a thread, threads of a block, and of a multiprocessor.
template <class T>
struct Forward {
  static constexpr bool kNarrow = sizeof(T) < sizeof(float);
  static constexpr int kPacks = 4, kMostThreads = kMostElements / (kPacks * kPack<T>);
  static constexpr int kWanted = kNarrow ? 128 : 256;
  static constexpr int kThreads = kWanted < kMostThreads ? kWanted : kMostThreads;
  // What limits rows of 16 bits are the bytes in flight: the more threads, the more.
  static constexpr int kResident = kNarrow ? 2 * kPlainThreads : kPlainThreads;
};

// Adds the residual to the thread's packs of the row, and writes the sums.
template <class T, int kPacks>
__device__ void add_residual(const RowNormalizationArgs& args, const PlainWalk& walk,
                             Words (&packs)[kPacks]) {
  constexpr int N = kPack<T>;
  Words more[kPacks];
  walk.load(args.residual, 0, more);
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const auto x = elements<T>(packs[i]), residual = elements<T>(more[i]);
    Pack<T, N> sum;
#pragma unroll
    for (int k = 0; k < N; ++k) sum.v[k] = Narrow<T>::from(widen(x.v[k]) + widen(residual.v[k]));
    packs[i] = __builtin_bit_cast(Words, sum);
    walk.store(args.sum, i, sum);
  }
}

template <class T, Held kHeld, bool kAdd>
__global__ void __launch_bounds__(Forward<T>::kMostThreads,
                                  Forward<T>::kResident / Forward<T>::kMostThreads)
    plain_rows_kernel(RowNormalizationArgs args, PlainPlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  constexpr int N = kPack<T>, kPacks = Forward<T>::kPacks;
  __shared__ typename RowTotals<C>::Memory shared;
  RowTotals<C> totals(shared, plan.members);
  PlainWalk walk(plan);
  PlainParameter<kHeld, T, kPacks> gamma(args.gamma, C(1), walk), beta(args.beta, C(0), walk);
  // The residual takes the registers of the next row.
  constexpr bool kAhead = !kAdd;
  Words next[kPacks];
  if constexpr (kAhead) walk.load(args.x, 0, next);
  for (; walk.more(); walk.next()) {
    Words packs[kPacks];
    if constexpr (kAhead) {
#pragma unroll
      for (int i = 0; i < kPacks; ++i) packs[i] = next[i];
      walk.load(args.x, 1, next);
    } else {
      walk.load(args.x, 0, packs);
      add_residual<T>(args, walk, packs);
    }
    gamma.start_row(walk, args.channels);
    beta.start_row(walk, args.channels);
    const RowStatistics<C> s =
        find_statistics<T, 1>(packs, walk, totals, args, C(plan.row_packs * N));
    if (walk.lane == 0 && walk.has_row()) s.write(args, walk.row);
    const C shift = -s.rest * s.inverse;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      C scale[N], offset[N];
      gamma.get(walk, i, scale);
      beta.get(walk, i, offset);
      const auto x = elements<T>(packs[i]);
      Pack<T, N> result;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const C xhat = fused(widen(x.v[k]) - s.mean, s.inverse, shift);
        result.v[k] = Narrow<T>::from(fused(xhat, scale[k], offset[k]));
      }
      walk.store(args.y, i, result);
    }
  }
}

template <class T>
void run(const RowNormalizationArgs& args, const Launch& launch) {
  using F = Forward<T>;
  const PlainPlan plan =
      plan_plain_rows(args, kPack<T>, F::kPacks, F::kThreads, F::kResident, launch);
  const unsigned blocks = plan.blocks, block = unsigned(plan.block);
  if constexpr (!F::kNarrow) {
    constexpr Held kHeld = Held::kRegisters;
    if (args.has_sum())
      return launch_kernel<plain_rows_kernel<T, kHeld, true>>(blocks, block, launch, args, plan);
    if (!has_channel_rows(args))
      return launch_kernel<plain_rows_kernel<T, kHeld, false>>(blocks, block, launch, args, plan);
  }
  launch_kernel<plain_rows_kernel<T, Held::kRow, false>>(blocks, block, launch, args, plan);
}

}  // namespace

bool has_plain_rows(Float type, const RowNormalizationArgs& args) {
  return has_whole_packs(type, args) && args.parts <= 1 && row_size(args) <= kMostElements;
}

void launch_plain_rows(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  if (type != Float::kF32 && !has_channel_rows(args)) return launch_narrow_rows(type, args, launch);
  with_storage(type, [&](auto storage) { run<decltype(storage)>(args, launch); });
}

}  // namespace catena::gpu
