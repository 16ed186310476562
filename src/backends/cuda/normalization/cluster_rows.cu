// Normalization of rows that the blocks of a cluster share, forward.
#include "backends/cuda/normalization/cluster_rows.cuh"

namespace catena::gpu {
namespace {

// Numbers of a part of a row, n of them: their mean, and the sums of what they are beside it,
// squared and as it is. The latter is little: what the rounding of the mean lost.
struct PartMoments {
  float v[kTold];

  // Those of all parts, of which each lane has one: n numbers, a share of all.
  template <int kFirst>
  __device__ void join(float n, float share, int lanes = 2 * kFirst) {
    float mean[1] = {v[0] * share};
    add_lanes<1, kFirst>(mean, lanes);
    const float d = v[0] - mean[0];
    float sums[2] = {fused(d, fused(n, d, 2 * v[2]), v[1]), fused(n, d, v[2])};
    add_lanes<2, kFirst>(sums, lanes);
    v[0] = mean[0], v[1] = sums[0], v[2] = sums[1];
  }
  // The same where nothing is centred.
  template <int kFirst>
  __device__ void add(int lanes = 2 * kFirst) {
    float squares[1] = {v[1]};
    add_lanes<1, kFirst>(squares, lanes);
    v[0] = 0, v[1] = squares[0], v[2] = 0;
  }
};

// Those of the packs of a warp; share: 1 / n.
template <class F, class T>
__device__ PartMoments warp_moments(const Words (&packs)[F::kColumns / kPack<T>],
                                    const ClusterWalk<F, T>& walk, bool is_centred, float share) {
  constexpr int N = kPack<T>, kPacks = F::kColumns / N;
  float mean[1] = {};
  if (is_centred) {
    float shares[kPacks] = {};  // shares of the mean do not overflow
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const auto x = elements<T>(packs[i]);
#pragma unroll
      for (int k = 0; k < N; ++k) shares[i] = fused(widen(x.v[k]), share, shares[i]);
      mean[0] += shares[i];
    }
    add_lanes<1, 16>(mean);
  }
  float sums[2] = {};
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (!walk.has_pack(i)) continue;
    const auto x = elements<T>(packs[i]);
    float squares = 0, numbers = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float v = widen(x.v[k]) - mean[0];
      squares = fused(v, v, squares);
      if constexpr (sizeof(T) == sizeof(float)) numbers += v;  // 16 bits have no such digits
    }
    sums[0] += squares;
    sums[1] += numbers;
  }
  if constexpr (sizeof(T) == sizeof(float))
    add_lanes<2, 16>(sums);
  else
    add_lanes<1, 16>(sums);
  return {{mean[0], sums[0], is_centred ? sums[1] : 0.0f}};
}

// A warp's and a block's part of a row, and how they are joined.
template <class F, class T>
class ClusterMoments {
 public:
  using Walk = ClusterWalk<F, T>;
  __device__ ClusterMoments(const RowNormalizationArgs& args, const Walk& walk,
                            ClusterShared* shared)
      : talk_(shared, walk.blocks), centred_(args.centred), eps_(float(args.eps)) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const float of_warp = walk.size_of_warp(warp), of_me = walk.size_of(walk.rank);
    size_ = float(walk.row_packs * kPack<T>);
    share_of_warp_ = of_warp > 0 ? 1 / of_warp : 0;
    lane_warp_ = lane < F::kThreads / 32 ? walk.size_of_warp(lane) : 0;
    share_of_lane_ = of_me > 0 ? lane_warp_ / of_me : 0;
    lane_block_ = walk.size_of(lane & (walk.blocks - 1));
  }
  template <int kPacks>
  __device__ void tell(const Words (&packs)[kPacks], const Walk& walk) {
    PartMoments part = warp_moments<F, T>(packs, walk, centred_, share_of_warp_);
    talk_.tell(walk.rank, part.v, [&](float(&v)[kTold]) {
      PartMoments& parts = reinterpret_cast<PartMoments&>(v);
      centred_ ? parts.join<16>(lane_warp_, share_of_lane_) : parts.add<16>();
    });
  }
  __device__ RowStatistics<float> hear(const Walk& walk) const {
    PartMoments part;
    talk_.hear(part.v);
    centred_ ? part.join<kMostBlocks / 2>(lane_block_, lane_block_ / size_, walk.blocks)
             : part.add<kMostBlocks / 2>(walk.blocks);
    const float rest = part.v[2] / size_;
    float variance = fused(-rest, rest, part.v[1] / size_);
    if (variance < 0) variance = 0;
    return {1.0f / root(variance + eps_), part.v[0], rest};
  }

 private:
  ClusterTalk<F> talk_;
  bool centred_;
  float eps_, size_, share_of_warp_, lane_warp_, share_of_lane_, lane_block_;
};

template <class T, class F, bool kAdd>
__global__ void __launch_bounds__(F::kThreads, F::kResident)
    cluster_rows_kernel(RowNormalizationArgs args, ClusterPlan plan) {
  wait_for_previous_kernel();
  using Ring = RowRing<F, T, kAdd ? 2 : 1>;
  constexpr int N = kPack<T>, kPacks = Ring::kPacks, kDepth = Ring::kDepth;
  ClusterShared* const shared = reinterpret_cast<ClusterShared*>(dynamic_shared());
  ClusterWalk<F, T> walk(plan);
  Ring ring(shared, walk);
  const auto ask = [&](int ahead) {
    ring.ask(walk, 0, args.x, ahead);
    if constexpr (kAdd) ring.ask(walk, 1, args.residual, ahead);
    end_group_of_copies();
  };
#pragma unroll
  for (int d = 0; d < kDepth; ++d) ask(d);
  arrive_at_cluster();
  float gamma[F::kColumns], beta[F::kColumns];
  get_parameters<F, T>(args.gamma, 1, walk, gamma);
  get_parameters<F, T>(args.beta, 0, walk, beta);
  ClusterMoments<F, T> moments(args, walk, shared);
  // Of the row that is so many steps ahead; sums are written.
  const auto tell = [&](int ahead) {
    Words packs[kPacks];
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      packs[i] = ring.at(0, ahead, i);
      if constexpr (kAdd) {
        const auto x = elements<T>(packs[i]), more = elements<T>(ring.at(1, ahead, i));
        float sums[N];
#pragma unroll
        for (int k = 0; k < N; ++k) sums[k] = widen(x.v[k]) + widen(more.v[k]);
        packs[i] = __builtin_bit_cast(Words, narrow<T, N>(sums));
        ring.at(0, ahead, i) = packs[i];
        if (walk.has_pack(i))
          *walk.at(static_cast<Words*>(args.sum), walk.row + ahead * walk.step, i) = packs[i];
      }
    }
    moments.tell(packs, walk);
  };
  wait_for_all_but<kDepth - 1>();
  wait_for_cluster();  // all blocks have begun
  tell(0);
  for (; walk.more(); walk.next()) {
    const RowStatistics<float> s = moments.hear(walk);
    if (kDepth > 1 && walk.more(1)) {
      wait_for_all_but<(kDepth > 1 ? kDepth - 2 : 0)>();
      tell(1);
    }
    if (walk.leads()) s.write(args, walk.row);
    const float shift = -s.rest * s.inverse;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      float results[N];
      const auto x = elements<T>(ring.at(0, 0, i));
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float xhat = fused(widen(x.v[k]) - s.mean, s.inverse, shift);
        results[k] = fused(xhat, gamma[i * N + k], beta[i * N + k]);
      }
      walk.store(args.y, i, narrow<T, N>(results));
    }
    ask(kDepth);
    ring.next();
    if (kDepth == 1 && walk.more(1)) {
      wait_for_copies();
      walk.next();
      tell(0);
      walk.row -= walk.step;
    }
  }
}

template <class T, class F, bool kAdd>
bool run(const RowNormalizationArgs& args, const Launch& launch) {
  constexpr auto kKernel = cluster_rows_kernel<T, F, kAdd>;
  const auto plan =
      plan_clusters<F, T, kKernel>(args, F::template bytes < T, kAdd ? 2 : 1 > (), launch);
  if (plan.clusters == 0) return false;
  launch_clusters<kKernel>(plan.shape, unsigned(plan.clusters), launch, args, plan);
  return true;
}

template <class T, bool kAdd>
bool run(const RowNormalizationArgs& args, const Launch& launch) {
  // Memory does not limit 16-bit rows without a residual: two blocks fill one another's waits.
  constexpr int kResident = sizeof(T) < sizeof(float) && !kAdd ? 2 : 1;
  return run<T, ClusterForm<kClusterThreads, kResident>, kAdd>(args, launch) ||
         run<T, ClusterForm<2 * kClusterThreads>, kAdd>(args, launch);
}

}  // namespace

bool launch_cluster_rows(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  return is_for_clusters(type, args) && with_storage(type, [&](auto storage) {
           using T = decltype(storage);
           return args.has_sum() ? run<T, true>(args, launch) : run<T, false>(args, launch);
         });
}

}  // namespace catena::gpu
