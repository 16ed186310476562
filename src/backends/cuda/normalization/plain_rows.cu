// Normalization of plain rows, forward.
#include "backends/cuda/normalization/plain_rows.cuh"

namespace catena::gpu {
namespace {

constexpr int kForwardElements = 16;  // of a thread
constexpr int kForwardThreads = kPlainThreads < 256 ? kPlainThreads : 256;

// Takes the mean off the elements v and finds the statistics. The mean is made first, so that the
// squares are of numbers that are small; what is left of it then is its rest.
template <int N, class C, int kElements>
__device__ RowStatistics<C> centre(C (&v)[kElements], const PlainWalk& walk, RowTotals<C>& totals,
                                   const RowNormalizationArgs& args) {
  const C size = C(args.channels), share = C(1) / size;
  C mean[2] = {};
  if (args.centred) {
    // Shares of it do not overflow.
#pragma unroll
    for (int e = 0; e < kElements; ++e) mean[0] = fused(v[e], share, mean[0]);
    totals.template sum<1>(mean);
  }
  C sums[2] = {};  // of squares and of the numbers
#pragma unroll
  for (int e = 0; e < kElements; ++e) {
    if (!walk.has_pack(e / N)) continue;
    v[e] -= mean[0];
    sums[0] = fused(v[e], v[e], sums[0]);
    sums[1] += v[e];
  }
  if (args.centred)
    totals.template sum<2>(sums);
  else
    totals.template sum<1>(sums);
  const C rest = args.centred ? sums[1] / size : C(0);
  C variance = fused(-rest, rest, sums[0] / size);
  if (variance < C(0)) variance = C(0);
  return {C(1) / root(variance + C(args.eps)), mean[0], rest};
}

template <class T, int kPacks>
__global__ void __launch_bounds__(kPlainThreads, 1)
    plain_rows_kernel(RowNormalizationArgs args, PlainPlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  constexpr int N = kPack<T>, kElements = kPacks * N;
  __shared__ typename RowTotals<C>::Memory shared;
  RowTotals<C> totals(shared, plan.members);
  PlainWalk walk(args.samples, plan);
  C gamma[kElements], beta[kElements];
  walk.load_parameters<N>(args.gamma, C(1), gamma);
  walk.load_parameters<N>(args.beta, C(0), beta);
  Pack<T, N> packs[kPacks];
  walk.load(args.x, 0, packs);
  for (; walk.more(); walk.next()) {
    C v[kElements];
#pragma unroll
    for (int e = 0; e < kElements; ++e) v[e] = widen(packs[e / N].v[e % N]);
    walk.load(args.x, 1, packs);
    const RowStatistics<C> s = centre<N>(v, walk, totals, args);
    if (walk.lane == 0 && walk.has_row()) s.write(args, walk.row);
    const C shift = -s.rest * s.inverse;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      Pack<T, N> result;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const int e = i * N + k;
        result.v[k] = Narrow<T>::from(fused(fused(v[e], s.inverse, shift), gamma[e], beta[e]));
      }
      walk.store(args.y, i, result);
    }
  }
}

template <class T>
void run(const RowNormalizationArgs& args, const Launch& launch) {
  constexpr int N = kPack<T>, kPacks = kForwardElements / N;
  const PlainPlan plan = plan_plain_rows(args, N, kPacks, kForwardThreads, launch);
  launch_kernel<plain_rows_kernel<T, kPacks>>(plan.blocks, plan.block, launch, args, plan);
}

}  // namespace

bool has_plain_rows(Float type, const RowNormalizationArgs& args) {
  if (type == Float::kF64 || !args.aligned || args.parts > 1) return false;
  if (args.positions != 1 || args.inner != 1 || args.groups != 1) return false;
  const int64_t pack = type == Float::kF32 ? kPack<float> : kPack<__half>;
  return args.channels % pack == 0 && args.channels <= kForwardElements * kPlainThreads;
}

void launch_plain_rows(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  switch (type) {
    case Float::kF16:
      return run<__half>(args, launch);
    case Float::kBf16:
      return run<__nv_bfloat16>(args, launch);
    default:
      return run<float>(args, launch);
  }
}

}  // namespace catena::gpu
