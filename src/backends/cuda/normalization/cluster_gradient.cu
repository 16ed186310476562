// Normalization of rows that the blocks of a cluster share: the gradients of x, gamma and beta.
// Those of gamma and beta are summed in registers over the rows of a cluster; a second kernel sums
// over the clusters. The order is fixed, so that equal launches give equal bits.
#include "backends/cuda/normalization/cluster_rows.cuh"
#include "backends/cuda/normalization/parameter_lines.cuh"

namespace catena::gpu {
namespace {

// Leaves sums over the rows of a cluster in its line of numbers.
template <class F, class T>
__device__ void store_line(const RowParameterGradient& gradient, const ClusterWalk<F, T>& walk,
                           const float (&sums)[F::kColumns], float* line) {
  using Four = Pack<float, 4>;
  constexpr int N = kPack<T>;
  if (gradient.data == nullptr) return;
#pragma unroll
  for (int i = 0; i < F::kColumns / N; ++i) {
    if (!walk.has_pack(i)) continue;
    Four* const to = reinterpret_cast<Four*>(line + walk.first_column(i));
#pragma unroll
    for (int q = 0; q < N / 4; ++q) {
      const float* const from = sums + i * N + q * 4;
      to[q] = {{from[0], from[1], from[2], from[3]}};
    }
  }
}

__device__ inline RowStatistics<float> statistics_of(const RowNormalizationArgs& args, int row) {
  RowStatistics<float> s{};
  if (row < args.samples) s.read(args, row);
  return s;
}

template <class T, class F, bool kAdd>
__global__ void __launch_bounds__(F::kThreads, F::kResident)
    cluster_gradient_kernel(RowNormalizationArgs args, RowParameterSums parameters,
                            ClusterPlan plan) {
  wait_for_previous_kernel();
  using Ring = RowRing<F, T, kAdd ? 3 : 2>;
  constexpr int N = kPack<T>, kPacks = Ring::kPacks, kDepth = Ring::kDepth;
  ClusterShared* const shared = reinterpret_cast<ClusterShared*>(dynamic_shared());
  ClusterWalk<F, T> walk(plan);
  Ring ring(shared, walk);
  ClusterTalk<F> talk(shared, walk.blocks);
  const auto ask = [&](int ahead) {
    ring.ask(walk, 0, args.x, ahead);
    ring.ask(walk, 1, args.gy, ahead);
    if constexpr (kAdd) ring.ask(walk, 2, args.gsum, ahead);
    end_group_of_copies();
  };
#pragma unroll
  for (int d = 0; d < kDepth; ++d) ask(d);
  arrive_at_cluster();
  RowStatistics<float> s = statistics_of(args, walk.row),
                       next = statistics_of(args, walk.row + walk.step);
  float gamma[F::kColumns], of_gamma[F::kColumns] = {}, of_beta[F::kColumns] = {};
  get_parameters<F, T>(args.gamma, 1, walk, gamma);
  const auto tell = [&](int ahead, const RowStatistics<float>& s) {
    const float shift = -s.rest * s.inverse;
    float sums[2] = {};  // as RowSums; zeros of packs that are not there add nothing
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const auto px = elements<T>(ring.at(0, ahead, i)), pgy = elements<T>(ring.at(1, ahead, i));
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const int e = i * N + k;
        const float gy = widen(pgy.v[k]), h = gamma[e] * gy, centred = widen(px.v[k]) - s.mean;
        sums[0] += h;
        sums[1] = fused(h, centred, sums[1]);
        of_beta[e] += gy;
        of_gamma[e] = fused(gy, fused(centred, s.inverse, shift), of_gamma[e]);
      }
    }
    add_lanes<2, 16>(sums);
    talk.tell(walk.rank, sums, [](float(&v)[2]) { add_lanes<2, 16>(v); });
  };
  wait_for_all_but<kDepth - 1>();
  wait_for_cluster();  // all blocks have begun
  tell(0, s);
  for (; walk.more(); walk.next()) {
    RowSums<float> sums;
    talk.hear(sums.v);
    add_lanes<2, kMostBlocks / 2>(sums.v, walk.blocks);
    const RowStatistics<float> after = statistics_of(args, walk.row + 2 * walk.step);
    if (kDepth > 1 && walk.more(1)) {
      wait_for_all_but<(kDepth > 1 ? kDepth - 2 : 0)>();
      tell(1, next);
    }
    const RowGradient<float> gradient(s, sums, float(args.channels), args.centred);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (args.y == nullptr) continue;
      const auto px = elements<T>(ring.at(0, 0, i)), pgy = elements<T>(ring.at(1, 0, i));
      float results[N];
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float h = gamma[i * N + k] * widen(pgy.v[k]);
        const float rest = fused(gradient.of_x, widen(px.v[k]) - s.mean, gradient.constant);
        results[k] = fused(s.inverse, h, rest);
      }
      if constexpr (kAdd) {
        const auto more = elements<T>(ring.at(2, 0, i));
#pragma unroll
        for (int k = 0; k < N; ++k) results[k] += widen(more.v[k]);
      }
      walk.store(args.y, i, narrow<T, N>(results));
    }
    ask(kDepth);
    ring.next();
    if (kDepth == 1 && walk.more(1)) {
      wait_for_copies();
      tell(0, next);
    }
    s = next;
    next = after;
  }
  const int64_t channels = int64_t(plan.row_packs) * N;
  float* const line =
      static_cast<float*>(parameters.partials) + blockIdx.x / unsigned(walk.blocks) * channels;
  store_line<F, T>(parameters.gamma, walk, of_gamma, line);
  store_line<F, T>(parameters.beta, walk, of_beta, line + plan.clusters * channels);
}

// Calls use(plan, launch_form) for the form that takes such rows, if there is one.
template <class T, class F, bool kAdd, class Use>
bool use_form(const RowNormalizationArgs& args, const Launch& launch, Use use) {
  constexpr auto kKernel = cluster_gradient_kernel<T, F, kAdd>;
  const auto plan =
      plan_clusters<F, T, kKernel>(args, F::template bytes < T, kAdd ? 3 : 2 > (), launch);
  if (plan.clusters == 0) return false;
  use(plan, [&](const RowParameterSums& sums) {
    launch_clusters<kKernel>(plan.shape, unsigned(plan.clusters), launch, args, sums, plan);
    if (sums.partials != nullptr) sum_wide_lines<T>(sums, args.channels, plan.clusters, launch);
  });
  return true;
}
template <class T, bool kAdd, class Use>
void use_forms(const RowNormalizationArgs& args, const Launch& launch, Use use) {
  use_form<T, ClusterForm<kClusterThreads>, kAdd>(args, launch, use) ||
      use_form<T, ClusterForm<2 * kClusterThreads>, kAdd>(args, launch, use);
}
template <class Use>
void use_forms(Float type, const RowNormalizationArgs& args, const Launch& launch, Use use) {
  with_storage(type, [&](auto storage) {
    using T = decltype(storage);
    args.has_sum() ? use_forms<T, true>(args, launch, use) : use_forms<T, false>(args, launch, use);
  });
}

}  // namespace

int64_t cluster_gradient_partials(Float type, const RowNormalizationArgs& args,
                                  const Launch& launch) {
  if (!is_for_clusters(type, args)) return 0;
  int64_t numbers = 0;
  use_forms(type, args, launch, [&](const ClusterPlan& plan, const auto&) {
    numbers = 2 * plan.clusters * args.channels;
  });
  return numbers;
}

void launch_cluster_gradient(Float type, const RowNormalizationArgs& args,
                             const RowParameterSums& parameters, const Launch& launch) {
  use_forms(type, args, launch,
            [&](const ClusterPlan&, const auto& launch_form) { launch_form(parameters); });
}

}  // namespace catena::gpu
