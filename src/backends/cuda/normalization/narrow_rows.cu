// Normalization of plain rows in 16 bits, forward: a warp or a part of one for each, of long ones a
// block. It asks for all that it needs at once and ends with its row. So many of them begin and end
// that memory is always at work, which loops that load the next row ahead did not achieve.
#include <type_traits>

#include "backends/cuda/common/pairs.cuh"
#include "backends/cuda/normalization/plain_rows.cuh"

namespace catena::gpu {
namespace {

constexpr int kWarp = 32, kMostPacks = 4;                           // of a thread
constexpr int kLeastNarrowThreads = 128, kMostNarrowThreads = 256;  // of a block
constexpr int kResidentNarrowThreads = 1024;                        // more have too few registers
static_assert(kMostElements <= kMostNarrowThreads * kMostPacks * kPack<__half>);

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

// As RowTotals, of the threads of a warp or of a part of it.
template <class C>
struct WarpTotals {
  struct Memory {};
  int members;
  __device__ WarpTotals(Memory&, int members) : members(members) {}
  template <int kCount>
  __device__ void sum(C (&v)[2]) const {
    add_lanes<kCount, kWarp / 2>(v, members);
  }
};

template <class T, int kPacks, Held kHeld, bool kAdd, template <class> class Totals>
__global__ void __launch_bounds__(kMostNarrowThreads, kResidentNarrowThreads / kMostNarrowThreads)
    narrow_rows_kernel(RowNormalizationArgs args, PlainPlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  constexpr int N = kPack<T>;
  __shared__ typename Totals<C>::Memory shared;
  const PlainWalk walk(plan);
  if (plan.members >= kWarp && !walk.has_row())
    return;  // nor has another thread of the warp or block
  Words packs[kPacks], residual[kAdd ? kPacks : 1];
  walk.load(args.x, 0, packs);
  if constexpr (kAdd) walk.load(args.residual, 0, residual);
  const PlainParameter<kHeld, T, kPacks> gamma(args.gamma, C(1), walk), beta(args.beta, C(0), walk);
  if constexpr (kAdd) add_packs<T>(args, walk, packs, residual);
  Totals<C> totals(shared, plan.members);
  const auto s = find_statistics<T, kPacks>(packs, walk, totals, args, C(plan.row_packs * N));
  if (walk.lane == 0 && walk.has_row()) s.write(args, walk.row);
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

template <class T, int kPacks, Held kHeld>
void run_packs(const RowNormalizationArgs& args, const PlainPlan& plan, const Launch& launch) {
  const auto run = [&](auto add, auto of_warp) {
    constexpr bool kAdd = decltype(add)::value;
    const unsigned blocks = plan.blocks, block = unsigned(plan.block);
    if constexpr (decltype(of_warp)::value)
      launch_kernel<narrow_rows_kernel<T, kPacks, kHeld, kAdd, WarpTotals>>(blocks, block, launch,
                                                                            args, plan);
    else
      launch_kernel<narrow_rows_kernel<T, kPacks, kHeld, kAdd, RowTotals>>(blocks, block, launch,
                                                                           args, plan);
  };
  using Yes = std::true_type;
  using No = std::false_type;
  if (args.has_sum())
    plan.members <= kWarp ? run(Yes(), Yes()) : run(Yes(), No());
  else
    plan.members <= kWarp ? run(No(), Yes()) : run(No(), No());
}

template <class T, Held kHeld>
void run_held(const RowNormalizationArgs& args, const PlainPlan& plan, const Launch& launch) {
  constexpr int kMost = kHeld == Held::kPacks ? kMostPacks - 1 : kMostPacks;
  switch ((plan.row_packs + plan.members - 1) / plan.members) {
    case 1: return run_packs<T, 1, kHeld>(args, plan, launch);
    case 2: return run_packs<T, 2, kHeld>(args, plan, launch);
    case 3: return run_packs<T, 3, kHeld>(args, plan, launch);
    default: run_packs<T, kMost, kHeld>(args, plan, launch);
  }
}

// The threads of a row: the fewest that hold it, with fewer packs each where a residual takes
// registers, too.
PlainPlan plan_narrow_rows(const RowNormalizationArgs& args, int pack) {
  const int packs = int(args.channels / pack), of_thread = args.has_sum() ? 3 : kMostPacks;
  const int members = power_of_two_from((packs - 1) / of_thread + 1, kMostNarrowThreads);
  const int block = members > kWarp ? members : kLeastNarrowThreads;
  return plan_rows(args, pack, members, block, kMostRows);
}

template <class T>
void run(const RowNormalizationArgs& args, const Launch& launch) {
  const PlainPlan plan = plan_narrow_rows(args, kPack<T>);
  const bool has_registers = plan.row_packs <= (kMostPacks - 1) * plan.members;
  if (has_registers && args.gamma.narrow && args.beta.narrow)
    run_held<T, Held::kPacks>(args, plan, launch);
  else
    run_held<T, Held::kMemory>(args, plan, launch);
}

}  // namespace

void launch_narrow_rows(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  if (type == Float::kF16)
    run<__half>(args, launch);
  else
    run<__nv_bfloat16>(args, launch);
}

}  // namespace catena::gpu
