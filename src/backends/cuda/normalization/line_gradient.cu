// Normalization of rows where a channel has several positions, too long for shared memory or too
// few to fill the device: the gradients of x, gamma and beta. A first kernel sums over the channels
// of each sample, in splits if there are few of them, and leaves lines of sums. The gradient of x
// needs the sums over a row, which are made of its channels', so that a second kernel reads x and
// gy for the last time; a third one adds up the lines.
#include "backends/cuda/normalization/parameter_lines.cuh"
#include "backends/cuda/normalization/row_walk.cuh"

namespace catena::gpu {
namespace {

constexpr int kLeastRowPacks = 128, kLeastPositions = 16;
constexpr int kPartPacks = 8;                       // the least that a thread takes of a row's part
constexpr int kMostSplits = 64, kWantedBlocks = 8;  // of a multiprocessor
constexpr int kRunsAhead = 4;                       // packs of each array that a thread loads ahead

// How the sums are shared out. Channels first: a team of threads takes a split of a channel of a
// sample. Channels last: a block takes `across` packs of adjacent channels, of all of which there
// are `strips`, and a split of the positions.
struct LinePlan {
  int pack;  // elements, of the sums
  int splits, team, across, row_pack, parts;
  int64_t strips;

  __host__ __device__ int64_t lines(const RowNormalizationArgs& args) const {
    return args.samples * splits;
  }
};

int clamped(int64_t wanted, int64_t most) {
  const int64_t n = wanted < most ? wanted : most;
  return int(n < 1 ? 1 : n);
}

template <class T>
LinePlan plan_lines(const RowNormalizationArgs& args, const Launch& launch) {
  LinePlan plan{};
  const int64_t most_blocks = int64_t(launch.multiprocessors) * kWantedBlocks;
  const auto missing = [&](int64_t blocks) { return (most_blocks + blocks - 1) / blocks; };
  const bool last = args.inner == 1;
  const int widest = last ? kColumnPack<T> : kPack<T>;
  plan.pack = args.aligned && (last ? args.channels : args.inner) % widest == 0 ? widest : 1;
  plan.team = plan.splits = 1;
  if (last) {
    plan.across = power_of_two_from(args.channels / plan.pack, 32);
    plan.strips = (args.channels / plan.pack + plan.across - 1) / plan.across;
    const int64_t turns = args.positions * plan.across / (kRowThreads * 2 * kRunsAhead);
    plan.splits =
        clamped(missing(args.samples * plan.strips), turns < kMostSplits ? turns : kMostSplits);
  } else {
    const int64_t packs = args.inner / plan.pack, runs = args.samples * args.channels;
    if (packs >= 1024 || (packs >= kRowThreads && runs < most_blocks)) {
      plan.team = kRowThreads;
      const int64_t turns = packs / (kRowThreads * kRunsAhead);
      plan.splits = clamped(missing(runs), turns < kMostSplits ? turns : kMostSplits);
    } else {
      plan.team = power_of_two_from(packs, 32);
    }
  }
  const RowGrid grid(args, kPack<T>, 1);
  plan.row_pack = grid.pack;
  const int64_t row = args.channels / args.groups * args.positions * args.inner / grid.pack;
  plan.parts = clamped(missing(args.samples * args.groups), row / (kRowThreads * kPartPacks));
  return plan;
}

// The sums of gy and of gy * (x - mean), and how they become those of a line.
template <class C>
struct LineSums {
  RowSums<C> sums;
  RowStatistics<C> s;
  __device__ void start(const RowNormalizationArgs& args, int64_t row) {
    sums = {};
    s.read(args, row);
  }
  __device__ void add(C gy, C x) {
    sums.v[0] += gy;
    sums.v[1] = fused(gy, x - s.mean, sums.v[1]);
  }
  __device__ static C of_xhat(const RowSums<C>& sums, const RowStatistics<C>& s) {
    return s.inverse * fused(-s.rest, sums.v[0], sums.v[1]);
  }
};

// Channels first.
template <class T, int N>
__global__ void __launch_bounds__(kRowThreads)
    run_lines_kernel(RowNormalizationArgs args, void* partials, LinePlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ RowSums<C> shared[kRowThreads / 32];
  const int teams = kRowThreads / plan.team, lane = int(threadIdx.x) & (plan.team - 1);
  const int64_t unit = int64_t(blockIdx.x) * teams + int(threadIdx.x) / plan.team;
  const int64_t run = unit / plan.splits, sample = run / args.channels,
                channel = run % args.channels;
  const int split = int(unit % plan.splits);
  const bool active = sample < args.samples;
  LineSums<C> line{};
  if (active) {
    line.start(args, run / (args.channels / args.groups));
    const int64_t packs = args.inner / N, step = int64_t(plan.team) * plan.splits,
                  first = run * packs;
    int64_t i = int64_t(split) * plan.team + lane;
    const auto visit = [&](const auto& at) {
      constexpr int U = sizeof(at) / sizeof(at[0]);
      Pack<T, N> x[U], gy[U];
      load_packs(args.x, at, x);
      load_packs(args.gy, at, gy);
#pragma unroll
      for (int u = 0; u < U; ++u)
#pragma unroll
        for (int k = 0; k < N; ++k) line.add(widen(gy[u].v[k]), widen(x[u].v[k]));
    };
    for (; i + (kRunsAhead - 1) * step < packs; i += kRunsAhead * step) {
      int64_t at[kRunsAhead];
#pragma unroll
      for (int u = 0; u < kRunsAhead; ++u) at[u] = first + i + u * step;
      visit(at);
    }
    for (; i < packs; i += step) {
      const int64_t one[1] = {first + i};
      visit(one);
    }
  }
  RowSums<C> sums = line.sums;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    if (offset >= plan.team) continue;
#pragma unroll
    for (C& number : sums.v) number += __shfl_xor_sync(kAllLanes, number, offset);
  }
  if (plan.team > 32) {  // the block
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sums;
    __syncthreads();
    if (threadIdx.x == 0)
      for (int w = 1; w < kRowThreads / 32; ++w) sums.merge(shared[w]);
  }
  if (!active || lane != 0) return;
  store_line<C>(partials, plan.lines(args), args.channels, sample * plan.splits + split, channel,
                sums.v[0], LineSums<C>::of_xhat(sums, line.s));
}

// Channels last.
template <class T, int N>
__global__ void __launch_bounds__(kRowThreads)
    column_lines_kernel(RowNormalizationArgs args, void* partials, LinePlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const int64_t row_packs = args.channels / N, of_sample = plan.strips * plan.splits;
  const int64_t sample = blockIdx.x / of_sample;
  const int split = int(blockIdx.x % of_sample / plan.strips);
  const int line = int(threadIdx.x) / plan.across, lines = kRowThreads / plan.across;
  const int64_t column =
      int64_t(blockIdx.x % plan.strips) * plan.across + int(threadIdx.x) % plan.across;
  const bool active = column < row_packs;
  const int64_t of_group = args.channels / args.groups;
  LineSums<C> channels[N] = {};
  if (active) {
#pragma unroll
    for (int k = 0; k < N; ++k)
      channels[k].start(args, sample * args.groups + (column * N + k) / of_group);
    const int64_t base = sample * args.positions * row_packs + column;
    const int64_t step = int64_t(lines) * plan.splits;
    const auto visit = [&](const auto& at) {
      constexpr int U = sizeof(at) / sizeof(at[0]);
      Pack<T, N> x[U], gy[U];
      load_packs(args.x, at, x);
      load_packs(args.gy, at, gy);
#pragma unroll
      for (int u = 0; u < U; ++u)
#pragma unroll
        for (int k = 0; k < N; ++k) channels[k].add(widen(gy[u].v[k]), widen(x[u].v[k]));
    };
    int64_t p = int64_t(split) * lines + line;
    for (; p + (kRunsAhead - 1) * step < args.positions; p += kRunsAhead * step) {
      int64_t at[kRunsAhead];
#pragma unroll
      for (int u = 0; u < kRunsAhead; ++u) at[u] = base + (p + u * step) * row_packs;
      visit(at);
    }
    for (; p < args.positions; p += step) {
      const int64_t one[1] = {base + p * row_packs};
      visit(one);
    }
  }
  RowSums<C> sums[N];
#pragma unroll
  for (int k = 0; k < N; ++k) sums[k] = channels[k].sums;
  line_merge<C>(sums, plan.across);
  if (!active || line != 0) return;
#pragma unroll
  for (int k = 0; k < N; ++k)
    store_line<C>(partials, plan.lines(args), args.channels, sample * plan.splits + split,
                  column * N + k, sums[k].v[0], LineSums<C>::of_xhat(sums[k], channels[k].s));
}

// The gradient of x, from the lines. The blocks begin with the end of the batch, which the sums
// have left in the cache.
template <class T, int N>
__global__ void __launch_bounds__(kRowThreads, 2)
    line_gradient_kernel(RowNormalizationArgs args, const void* partials, LinePlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ C shared[kRowThreads / 32];
  const int64_t block = int64_t(gridDim.x) - 1 - blockIdx.x, row = block / plan.parts;
  const int lane = int(block % plan.parts) * kRowThreads + int(threadIdx.x);
  const int members = plan.parts * kRowThreads;
  const Cursor<N> cursor(args, row, lane, members);
  const auto load = [&](int64_t pack) {
    return GradientPacks<T, N>{load_pack<T, N>(args.x, pack), load_pack<T, N>(args.gy, pack)};
  };
  GradientPacks<T, N> kept[2];
  load_kept(kept, cursor, true, load);
  RowStatistics<C> s;
  s.read(args, row);
  const int64_t of_group = args.channels / args.groups, sample = row / args.groups,
                first_channel = row % args.groups * of_group;
  const C* const xhat_sums = static_cast<const C*>(partials);
  const C* const own_sums = xhat_sums + plan.lines(args) * args.channels;
  C h = C(0), h_xhat = C(0);
  for (int64_t i = threadIdx.x; i < of_group * plan.splits; i += kRowThreads) {
    const int64_t channel = first_channel + i % of_group,
                  at = (sample * plan.splits + i / of_group) * args.channels + channel;
    const C gamma = parameter_at<T>(args.gamma, channel, C(1));
    h = fused(gamma, own_sums[at], h);
    h_xhat = fused(gamma, xhat_sums[at], h_xhat);
  }
  h = block_reduce(h, AddOp(), shared);
  h_xhat = block_reduce(h_xhat, AddOp(), shared);
  const C m = C(cursor.size());
  const RowGradient<C> gradient(s, C(h / m), C(h_xhat / m), args.centred);
  each_pack(kept, cursor, true, load, [&](const GradientPacks<T, N>& p, const Cursor<N>& c) {
    const Parameters<T, N> gamma(args.gamma, c, C(1));
    Pack<T, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C own = gamma.v[k] * widen(p.gy.v[k]);
      const C rest = fused(gradient.of_x, widen(p.x.v[k]) - s.mean, gradient.constant);
      result.v[k] = Narrow<T>::from(fused(s.inverse, own, rest));
    }
    static_cast<Pack<T, N>*>(args.y)[c.pack()] = result;
  });
}

template <class T, int N>
void launch_sums(const RowNormalizationArgs& args, void* partials, const LinePlan& plan,
                 const Launch& launch) {
  if (args.inner == 1) {
    const auto blocks = unsigned(args.samples * plan.strips * plan.splits);
    launch_kernel<column_lines_kernel<T, N>>(blocks, kRowThreads, launch, args, partials, plan);
  } else {
    const int64_t units = args.samples * args.channels * plan.splits;
    const int teams = kRowThreads / plan.team;
    launch_kernel<run_lines_kernel<T, N>>(unsigned((units + teams - 1) / teams), kRowThreads,
                                          launch, args, partials, plan);
  }
}

}  // namespace

bool has_line_gradient(Float type, const RowNormalizationArgs& args) {
  if (args.inner == 1 ? args.positions < kLeastPositions : args.positions != 1) return false;
  int pack = 1;
  CATENA_FLOAT_SWITCH(type, pack = RowGrid(args, kPack<T>, 1).pack;)
  const int64_t row = args.channels / args.groups * args.positions * args.inner;
  return row / pack >= kLeastRowPacks;
}

int64_t line_gradient_partials(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  int64_t lines = 0;
  CATENA_FLOAT_SWITCH(type, lines = plan_lines<T>(args, launch).lines(args);)
  return 2 * lines * args.channels;
}

void launch_line_gradient(Float type, const RowNormalizationArgs& args,
                          const RowParameterSums& parameters, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    const LinePlan plan = plan_lines<T>(args, launch);
    constexpr int kRunPack = kPack<T>, kLastPack = kColumnPack<T>;
    if (plan.pack == 1)
      launch_sums<T, 1>(args, parameters.partials, plan, launch);
    else if (plan.pack == kRunPack)
      launch_sums<T, kRunPack>(args, parameters.partials, plan, launch);
    else
      launch_sums<T, kLastPack>(args, parameters.partials, plan, launch);
    const auto blocks = unsigned(args.samples * args.groups * plan.parts);
    if (plan.row_pack == 1)
      launch_kernel<line_gradient_kernel<T, 1>>(blocks, kRowThreads, launch, args,
                                                parameters.partials, plan);
    else
      launch_kernel<line_gradient_kernel<T, kPack<T>>>(blocks, kRowThreads, launch, args,
                                                       parameters.partials, plan);
    sum_partials<T>(parameters, args.channels, plan.lines(args), launch);
  })
}

}  // namespace catena::gpu
