// Normalization of rows of several channels that shared memory holds: the gradients of x, gamma and
// beta. What a row adds to those of gamma and beta are its sums over each channel, of which the
// sums that the gradient of x needs are made, too; a second kernel sums over the samples.
#include "backends/cuda/normalization/kept_rows.cuh"
#include "backends/cuda/normalization/parameter_lines.cuh"

namespace catena::gpu {
namespace {

constexpr int kSums = RowSums<float>::kNumbers;

// The sums of gy and of gy * (x - mean) over each channel of a row, as the teams' warps leave them
// in shared memory.
template <class C>
struct ChannelSums {
  C* numbers;
  int channels, warps;

  // Adds up the team's numbers; all threads of a warp call it.
  __device__ void put(C (&v)[kSums], int channel, int team, int lane) const {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      if (offset >= team) continue;
#pragma unroll
      for (int k = 0; k < kSums; ++k) v[k] += __shfl_xor_sync(kAllLanes, v[k], offset);
    }
    if (channel >= channels || lane % 32 != 0) return;
    C* const to = numbers + (channel * warps + lane / 32) * kSums;
#pragma unroll
    for (int k = 0; k < kSums; ++k) to[k] = v[k];
  }
  __device__ RowSums<C> of(int channel) const {
    RowSums<C> sums{};
    const C* from = numbers + channel * warps * kSums;
    for (int w = 0; w < warps; ++w, from += kSums) {
#pragma unroll
      for (int k = 0; k < kSums; ++k) sums.v[k] += from[k];
    }
    return sums;
  }
  // Those of h = gamma * gy over the row, for all threads; each warp adds the same numbers.
  template <class T>
  __device__ RowSums<C> of_row(const RowNormalizationArgs& args, int64_t first_channel) const {
    RowSums<C> sums{};
    for (int c = int(threadIdx.x) % 32; c < channels; c += 32) {
      const RowSums<C> own = of(c);
      const C factor = parameter_at<T>(args.gamma, first_channel + c, C(1));
#pragma unroll
      for (int k = 0; k < kSums; ++k) sums.v[k] = fused(factor, own.v[k], sums.v[k]);
    }
#pragma unroll
    for (C& number : sums.v) number = warp_reduce(number, AddOp());
    return sums;
  }
  // What the row adds to the gradients of gamma and beta.
  __device__ void store(const RowStatistics<C>& s, void* partials, int row, int rows) const {
    for (int c = int(threadIdx.x); c < channels; c += int(blockDim.x)) {
      const RowSums<C> own = of(c);
      // Rows with their channels follow one another as the lines' numbers do.
      store_line<C>(partials, rows, channels, row, c, own.v[0],
                    s.inverse * fused(-s.rest, own.v[0], own.v[1]));
    }
  }
};

template <class T, int N>
__global__ void __launch_bounds__(kKeptThreads, kResidentThreads / kKeptThreads)
    kept_gradient_kernel(RowNormalizationArgs args, void* partials, KeptPlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  using P = Pack<T, N>;
  const KeptWalk<T, N> walk(plan);
  P* const kept_x = reinterpret_cast<P*>(dynamic_shared());
  P* const kept_gy = kept_x + plan.places();
  ChannelSums<C> channels{reinterpret_cast<C*>(kept_gy + plan.places()), plan.channels,
                          plan.warps_of_team()};
  // Rows use two parts of the memory in turn: who writes to one has met, since it was read, all of
  // its readers.
  const int part = plan.channels * plan.warps_of_team() * kSums;
  {
    const P* const x = walk.packs(args.x, int(blockIdx.x));
    const P* const gy = walk.packs(args.gy, int(blockIdx.x));
    walk.each([&](int place, int pack) {
      copy_ahead(kept_x + place, x + pack);
      copy_ahead(kept_gy + place, gy + pack);
    });
  }
  int step = part;
  for (int row = int(blockIdx.x); row < plan.rows; row += int(gridDim.x)) {
    RowStatistics<C> s;
    s.read(args, row);
    wait_for_copies();
    for (int round = 0; round < plan.rounds; ++round) {
      C sums[kSums] = {};
      walk.each(round, [&](int place, int) {
        const P px = kept_x[place], pgy = kept_gy[place];
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const C g = widen(pgy.v[k]);
          sums[0] += g;
          sums[1] = fused(g, widen(px.v[k]) - s.mean, sums[1]);
        }
      });
      channels.put(sums, walk.channel(round), plan.team, walk.lane());
    }
    __syncthreads();
    const int64_t first_channel = row % args.groups * plan.channels;
    const RowGradient<C> gradient(s, channels.template of_row<T>(args, first_channel),
                                  C(plan.channels * int64_t(args.inner)), args.centred);
    if (partials != nullptr) channels.store(s, partials, row, plan.rows);
    channels.numbers += step;
    step = -step;
    const bool has_next = plan.rows - row > int(gridDim.x);
    const int next = has_next ? row + int(gridDim.x) : row;
    const P* const x = walk.packs(args.x, next);
    const P* const gy = walk.packs(args.gy, next);
    P* const gx = walk.packs(args.y, row);
    for (int round = 0; round < plan.rounds; ++round) {
      if (!walk.has_channel(round)) break;
      const C gamma = parameter_at<T>(args.gamma, first_channel + walk.channel(round), C(1));
      walk.each(round, [&](int place, int pack) {
        const P px = kept_x[place], pgy = kept_gy[place];
        P result;
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const C h = gamma * widen(pgy.v[k]);
          const C rest = fused(gradient.of_x, widen(px.v[k]) - s.mean, gradient.constant);
          result.v[k] = Narrow<T>::from(fused(s.inverse, h, rest));
        }
        gx[pack] = result;
        if (!has_next) return;
        copy_ahead(kept_x + place, x + pack);
        copy_ahead(kept_gy + place, gy + pack);
      });
    }
  }
}

template <class T>
KeptPlan plan_gradient(const RowNormalizationArgs& args, const Launch& launch) {
  return plan_kept_rows<T>(args, 2, 0, 2 * kSums, launch);
}

template <class T, int N>
void run(const RowNormalizationArgs& args, const RowParameterSums& parameters, const KeptPlan& plan,
         const Launch& launch) {
  launch_with_shared<kept_gradient_kernel<T, N>>(plan.blocks, plan.block, size_t(plan.bytes),
                                                 launch, args, parameters.partials, plan);
  sum_partials<T>(parameters, args.channels, args.samples, launch);
}

}  // namespace

bool has_kept_gradient(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, return plan_gradient<T>(args, launch).block > 0;)
  return false;
}

void launch_kept_gradient(Float type, const RowNormalizationArgs& args,
                          const RowParameterSums& parameters, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    const KeptPlan plan = plan_gradient<T>(args, launch);
    const int pack = kept_pack<T>(args);
    if (pack == kPack<T>)
      run<T, kPack<T>>(args, parameters, plan, launch);
    else if (pack == kColumnPack<T>)
      run<T, kColumnPack<T>>(args, parameters, plan, launch);
    else
      run<T, 1>(args, parameters, plan, launch);
  })
}

}  // namespace catena::gpu
