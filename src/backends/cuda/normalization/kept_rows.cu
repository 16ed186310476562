// Normalization of rows of several channels that shared memory holds, forward.
#include "backends/cuda/normalization/kept_rows.cuh"
#include "backends/cuda/normalization/moments.cuh"

namespace catena::gpu {
namespace {

constexpr int kMostWarps = kKeptThreads / 32;

// The moments of all threads of the block, for each of them. Calls use the two parts of `shared` in
// turn: who writes to one has met, since it was read, all of its readers.
template <class C>
__device__ Moments<C> merge_block(Moments<C> v, Moments<C>* shared) {
  v = warp_merge(v);
  const int lane = int(threadIdx.x) % 32, warps = int(blockDim.x) / 32;
  if (lane == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  Moments<C> all{};
  if (lane < warps) all = shared[lane];
  all = warp_merge(all);
  all.n = __shfl_sync(kAllLanes, all.n, 0);
#pragma unroll
  for (C& number : all.v) number = __shfl_sync(kAllLanes, number, 0);
  return all;
}

template <class T, int N>
__global__ void __launch_bounds__(kKeptThreads, kResidentThreads / kKeptThreads)
    kept_rows_kernel(RowNormalizationArgs args, KeptPlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using P = Pack<T, N>;
  const KeptWalk<T, N> walk(plan);
  P* const kept = reinterpret_cast<P*>(dynamic_shared());
  Moments<C>* const shared = reinterpret_cast<Moments<C>*>(kept + plan.places());
  {
    const P* const x = walk.packs(args.x, int(blockIdx.x));
    walk.each([&](int place, int pack) { copy_ahead(kept + place, x + pack); });
  }
  int turn = 0;
  for (int row = int(blockIdx.x); row < plan.rows; row += int(gridDim.x), turn ^= 1) {
    wait_for_copies();
    ShiftedSums<C> sums;
    if (args.centred && walk.has_channel(0) && walk.lane() < plan.channel_packs)
      sums.shift = widen(kept[threadIdx.x].v[0]);
    int count = 0;
    walk.each([&](int place, int) {
      const P p = kept[place];
      count += N;
#pragma unroll
      for (int k = 0; k < N; ++k) sums.add(widen(p.v[k]));
    });
    Moments<C> found = sums.moments(count);
    // Squares about zero do not lose those of the mean.
    if (!args.centred && count > 0) found = {C(count), {C(0), sums.dd, C(0)}};
    found = merge_block(found, shared + turn * kMostWarps);
    const RowStatistics<C> s{C(1) / root(found.v[1] / found.n + C(args.eps)), found.v[0],
                             found.v[2]};
    if (threadIdx.x == 0) s.write(args, row);
    const C shift = -s.rest * s.inverse;
    const int64_t first_channel = row % args.groups * plan.channels;
    const bool has_next = plan.rows - row > int(gridDim.x);
    const P* const next = walk.packs(args.x, has_next ? row + int(gridDim.x) : row);
    P* const y = walk.packs(args.y, row);
    for (int round = 0; round < plan.rounds; ++round) {
      if (!walk.has_channel(round)) break;
      const int64_t channel = first_channel + walk.channel(round);
      const C gamma = parameter_at<T>(args.gamma, channel, C(1)),
              beta = parameter_at<T>(args.beta, channel, C(0));
      walk.each(round, [&](int place, int pack) {
        const P p = kept[place];
        P result;
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const C xhat = fused(widen(p.v[k]) - s.mean, s.inverse, shift);
          result.v[k] = Narrow<T>::from(fused(xhat, gamma, beta));
        }
        y[pack] = result;
        if (has_next) copy_ahead(kept + place, next + pack);
      });
    }
  }
}

template <class T, int N>
void run(const RowNormalizationArgs& args, const KeptPlan& plan, const Launch& launch) {
  launch_with_shared<kept_rows_kernel<T, N>>(plan.blocks, plan.block, size_t(plan.bytes), launch,
                                             args, plan);
}

}  // namespace

bool launch_kept_rows(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    const KeptPlan plan =
        plan_kept_rows<T>(args, 1, 2 * kMostWarps * (1 + Moments<float>::kNumbers), 0, launch);
    if (plan.block == 0) return false;
    const int pack = kept_pack<T>(args);
    if (pack == kPack<T>)
      run<T, kPack<T>>(args, plan, launch);
    else if (pack == kColumnPack<T>)
      run<T, kColumnPack<T>>(args, plan, launch);
    else
      run<T, 1>(args, plan, launch);
  })
  return true;
}

}  // namespace catena::gpu
