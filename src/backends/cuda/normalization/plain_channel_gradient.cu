// Normalization of plain rows that are channels of samples: the gradients of x, gamma and beta.
// What a row adds to those of its gamma and beta follows from the two sums that its gradient needs;
// a second kernel sums over the samples.
#include "backends/cuda/normalization/plain_gradient.cuh"

namespace catena::gpu {
namespace {

constexpr int kPacks = 4;  // of a thread
template <class T>
constexpr int kMostThreads = kMostElements / (kPacks * kPack<T>);

template <class T>
__global__ void __launch_bounds__(kMostThreads<T>, kPlainThreads / kMostThreads<T>)
    plain_channel_gradient_kernel(RowNormalizationArgs args, RowParameterSums parameters,
                                  PlainPlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  constexpr int N = kPack<T>;
  __shared__ typename RowTotals<C>::Memory shared;
  RowTotals<C> totals(shared, plan.members);
  PlainWalk walk(plan);
  GradientRow<T, kPacks, false> next;
  next.load(args, walk, 0);
  for (; walk.more(); walk.next()) {
    const GradientRow<T, kPacks, false> row = next;
    next.load(args, walk, 1);
    const C gamma = parameter_at<T>(args.gamma, walk.channel(args.channels), C(1));
    RowSums<C> sums{};  // of gy, not yet of h; zeros of packs that are not there add nothing
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const auto px = elements<T>(row.x[i]), pgy = elements<T>(row.gy[i]);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const C g = widen(pgy.v[k]);
        sums.v[0] += g;
        sums.v[1] = fused(g, widen(px.v[k]) - row.s.mean, sums.v[1]);
      }
    }
    totals.template sum<2>(sums.v);
    if (parameters.partials != nullptr && walk.lane == 0 && walk.has_row()) {
      C* const to = static_cast<C*>(parameters.partials) + walk.row;
      to[0] = row.s.inverse * fused(-row.s.rest, sums.v[0], sums.v[1]);
      to[walk.rows] = sums.v[0];
    }
    if (args.y == nullptr) continue;
    sums.v[0] *= gamma;
    sums.v[1] *= gamma;
    const RowGradient<C> gradient(row.s, sums, C(plan.row_packs * N), args.centred);
    row.store(args, walk, gradient, [&](int) { return gamma; });
  }
}

template <class T>
void run(const RowNormalizationArgs& args, const RowParameterSums& parameters,
         const Launch& launch) {
  constexpr int kThreads = kMostThreads<T> < 128 ? kMostThreads<T> : 128;
  const PlainPlan plan = plan_plain_rows(args, kPack<T>, kPacks, kThreads, kPlainThreads, launch);
  launch_kernel<plain_channel_gradient_kernel<T>>(plan.blocks, plan.block, launch, args, parameters,
                                                  plan);
  sum_partials<T>(parameters, args.channels, args.samples, launch);
}

}  // namespace

void launch_channel_gradient(Float type, const RowNormalizationArgs& args,
                             const RowParameterSums& parameters, const Launch& launch) {
  with_storage(type, [&](auto storage) { run<decltype(storage)>(args, parameters, launch); });
}

}  // namespace catena::gpu
