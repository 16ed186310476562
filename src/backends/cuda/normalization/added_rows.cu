// Normalization of sums in 16 bits, forward: rows of up to 1024 elements, a warp for each. A warp
// asks for all that it needs at once and ends with its row. So many warps begin and end that memory
// is always at work, which loops that load the next row ahead did not achieve.
#include "backends/cuda/common/pairs.cuh"
#include "backends/cuda/normalization/plain_rows.cuh"

namespace catena::gpu {
namespace {

constexpr int kWarp = 32, kAddedThreads = 128, kBlocksOfAddedRows = 8;
constexpr int kMostPacks = 4;  // of a thread

// Adds the residual to the packs, and writes the sums.
template <class T, int kPacks>
__device__ void add_packs(const RowNormalizationArgs& args, const PlainWalk& walk,
                          Words (&packs)[kPacks], const Words (&residual)[kPacks]) {
  constexpr int N = kPack<T>;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const auto x = elements<T>(packs[i]), more = elements<T>(residual[i]);
    Compute<T> sums[N];
#pragma unroll
    for (int k = 0; k < N; ++k) sums[k] = widen(x.v[k]) + widen(more.v[k]);
    const Pack<T, N> sum = narrow<T, N>(sums);
    packs[i] = __builtin_bit_cast(Words, sum);
    walk.store(args.sum, i, sum);
  }
}

// As RowTotals, of the threads of a warp.
template <class C>
struct WarpTotals {
  template <int kCount>
  __device__ void sum(C (&v)[2]) const {
    add_lanes<kCount, kWarp / 2>(v);
  }
};

template <class T, int kPacks, Held kHeld>
__global__ void __launch_bounds__(kAddedThreads, kBlocksOfAddedRows)
    added_rows_kernel(RowNormalizationArgs args, PlainPlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  constexpr int N = kPack<T>;
  const PlainWalk walk(plan);
  if (!walk.has_row()) return;  // nor has another thread of the warp
  Words packs[kPacks], residual[kPacks];
  walk.load(args.x, 0, packs);
  walk.load(args.residual, 0, residual);
  const PlainParameter<kHeld, T, kPacks> gamma(args.gamma, C(1), walk), beta(args.beta, C(0), walk);
  add_packs<T>(args, walk, packs, residual);
  const WarpTotals<C> totals;
  const auto s = find_statistics<T, kPacks>(packs, walk, totals, args, C(plan.row_packs * N));
  if (walk.lane == 0) s.write(args, walk.row);
  const C shift = -s.rest * s.inverse;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    C scale[N], offset[N], results[N];
    gamma.get(walk, i, scale);
    beta.get(walk, i, offset);
    const auto x = elements<T>(packs[i]);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C xhat = fused(widen(x.v[k]) - s.mean, s.inverse, shift);
      results[k] = fused(xhat, scale[k], offset[k]);
    }
    walk.store(args.y, i, narrow<T, N>(results));
  }
}

template <class T, Held kHeld>
void run_packs(const RowNormalizationArgs& args, const PlainPlan& plan, const Launch& launch) {
  const unsigned blocks = plan.blocks, block = unsigned(plan.block);
  constexpr int kMost = kHeld == Held::kPacks ? kMostPacks - 1 : kMostPacks;
  switch ((plan.row_packs + kWarp - 1) / kWarp) {
    case 1: return launch_kernel<added_rows_kernel<T, 1, kHeld>>(blocks, block, launch, args, plan);
    case 2: return launch_kernel<added_rows_kernel<T, 2, kHeld>>(blocks, block, launch, args, plan);
    case 3: return launch_kernel<added_rows_kernel<T, 3, kHeld>>(blocks, block, launch, args, plan);
    default: launch_kernel<added_rows_kernel<T, kMost, kHeld>>(blocks, block, launch, args, plan);
  }
}

template <class T>
void run(const RowNormalizationArgs& args, const Launch& launch) {
  const PlainPlan plan = plan_rows(args, kPack<T>, kWarp, kAddedThreads, kMostRows);
  const bool has_registers = plan.row_packs <= (kMostPacks - 1) * kWarp;
  if (has_registers && args.gamma.narrow && args.beta.narrow)
    run_packs<T, Held::kPacks>(args, plan, launch);
  else
    run_packs<T, Held::kMemory>(args, plan, launch);
}

}  // namespace

bool has_added_rows(Float type, const RowNormalizationArgs& args) {
  return args.has_sum() && type != Float::kF32 && has_plain_rows(type, args) &&
         !has_channel_rows(args) && args.channels <= kMostPacks * kWarp * kPack<__half>;
}

void launch_added_rows(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  if (type == Float::kF16)
    run<__half>(args, launch);
  else
    run<__nv_bfloat16>(args, launch);
}

}  // namespace catena::gpu
