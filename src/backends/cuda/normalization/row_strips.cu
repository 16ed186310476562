// Normalization of small groups of channels that are last in memory, forward and the gradient of x.
// A block takes a strip of adjacent groups of a sample, so that it reads whole lines of memory:
// each thread keeps to its channels, and what it finds is joined by channel and then by group. The
// sums of the gradient over a channel of a sample are its part of the gradients of gamma and beta.
#include "backends/cuda/normalization/moments.cuh"
#include "backends/cuda/normalization/parameter_lines.cuh"
#include "backends/cuda/normalization/row_walk.cuh"

namespace catena::gpu {
namespace {

constexpr int kStripChannels = 64;  // at most
constexpr int kPositionsAhead = 4;

// How the channels are cut: `channels` of a strip, in packs for `across` threads side by side, of
// which those behind the strip's end have nothing to do.
struct Strips {
  int channels, groups, across, pack;
  int64_t count;

  Strips(const RowNormalizationArgs& args, int widest) {
    const int of_group = int(args.channels / args.groups);
    groups = kStripChannels / of_group;
    if (groups > args.groups) groups = int(args.groups);
    channels = groups * of_group;
    pack = args.aligned && channels % widest == 0 && args.channels % widest == 0 ? widest : 1;
    across = power_of_two_from(channels / pack, kStripChannels);
    count = (args.groups + groups - 1) / groups;
  }
};

// What a thread has of its block's strip.
template <int N>
struct StripPlace {
  int64_t sample, first_group, row_packs, base;  // base: the pack at position 0
  int64_t positions;                             // 0: nothing to do
  int groups, of_group, column, line, lines;     // groups: of this strip; column: of channels

  __device__ StripPlace(const RowNormalizationArgs& args, const Strips& s)
      : sample(blockIdx.x / s.count),
        first_group(int64_t(blockIdx.x % s.count) * s.groups),
        row_packs(args.channels / N),
        groups(first_group + s.groups < args.groups ? s.groups : int(args.groups - first_group)),
        of_group(s.channels / s.groups),
        column(int(threadIdx.x) % s.across * N),
        line(int(threadIdx.x) / s.across),
        lines(int(blockDim.x) / s.across) {
    positions = column < groups * of_group ? args.positions : 0;
    base = sample * args.positions * row_packs + (first_channel() + column) / N;
  }
  __device__ int64_t first_channel() const { return first_group * of_group; }
  __device__ int64_t row(const RowNormalizationArgs& args, int group) const {
    return sample * args.groups + first_group + group;
  }
  // Calls visit(at) for packs at[0], at[1], ... of the thread.
  template <class F>
  __device__ void each(F visit) const {
    int64_t p = line;
    for (; p + (kPositionsAhead - 1) * lines < positions; p += kPositionsAhead * lines) {
      int64_t at[kPositionsAhead];
#pragma unroll
      for (int u = 0; u < kPositionsAhead; ++u) at[u] = base + (p + u * lines) * row_packs;
      visit(at);
    }
    for (; p < positions; p += lines) {
      const int64_t one[1] = {base + p * row_packs};
      visit(one);
    }
  }
};

template <class T, int N>
__global__ void __launch_bounds__(kRowThreads)
    strip_kernel(RowNormalizationArgs args, Strips strips) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ Moments<C> of_channel[kStripChannels];
  __shared__ RowStatistics<C> of_group[kStripChannels];
  const StripPlace<N> place(args, strips);
  ShiftedSums<C> sums[N];
  int count = 0;
  place.each([&](const auto& at) {
    constexpr int U = sizeof(at) / sizeof(at[0]);
    Pack<T, N> p[U];
    load_packs(args.x, at, p);
    if (count == 0) {
#pragma unroll
      for (int k = 0; k < N; ++k) sums[k].shift = widen(p[0].v[k]);
    }
    count += U;
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < N; ++k) sums[k].add(widen(p[u].v[k]));
  });
  Moments<C> values[N];
#pragma unroll
  for (int k = 0; k < N; ++k) values[k] = sums[k].moments(count);
  line_merge<C>(values, strips.across);
  if (place.line == 0 && place.positions > 0) {
    for (int k = 0; k < N; ++k) of_channel[place.column + k] = values[k];
  }
  __syncthreads();
  if (int(threadIdx.x) < place.groups) {
    const int group = threadIdx.x;
    Moments<C> all = of_channel[group * place.of_group];
    for (int c = 1; c < place.of_group; ++c) all.merge(of_channel[group * place.of_group + c]);
    of_group[group] = {C(1) / root(all.v[1] / all.n + C(args.eps)), all.v[0], all.v[2]};
    of_group[group].write(args, place.row(args, group));
  }
  __syncthreads();
  if (place.positions == 0) return;
  C mean[N], scale[N], shift[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const RowStatistics<C> s = of_group[(place.column + k) / place.of_group];
    const int64_t channel = place.first_channel() + place.column + k;
    mean[k] = s.mean;
    scale[k] = number_at(args.gamma, channel, C(1)) * s.inverse;
    shift[k] = fused(-s.rest, scale[k], number_at(args.beta, channel, C(0)));
  }
  place.each([&](const auto& at) {
    constexpr int U = sizeof(at) / sizeof(at[0]);
    Pack<T, N> p[U];
    load_packs(args.x, at, p);
#pragma unroll
    for (int u = 0; u < U; ++u) {
#pragma unroll
      for (int k = 0; k < N; ++k)
        p[u].v[k] = Narrow<T>::from(fused(widen(p[u].v[k]) - mean[k], scale[k], shift[k]));
      static_cast<Pack<T, N>*>(args.y)[at[u]] = p[u];
    }
  });
}

// gx = of_g * gy + of_x * (x - mean) + constant, of which a group has these.
template <class C>
struct GroupGradient {
  C of_x, constant;
};

template <class T, int N>
__global__ void __launch_bounds__(kRowThreads)
    strip_gradient_kernel(RowNormalizationArgs args, void* partials, Strips strips) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ RowSums<C> of_channel[kStripChannels];
  __shared__ GroupGradient<C> of_group[kStripChannels];
  const StripPlace<N> place(args, strips);
  const auto statistics = [&](int group) {
    RowStatistics<C> s;
    s.read(args, place.row(args, group));
    return s;
  };
  C mean[N], of_g[N];
  RowSums<C> sums[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    sums[k] = {};
    mean[k] = of_g[k] = C(0);
    if (place.positions == 0) continue;
    const RowStatistics<C> s = statistics((place.column + k) / place.of_group);
    mean[k] = s.mean;
    of_g[k] = number_at(args.gamma, place.first_channel() + place.column + k, C(1)) * s.inverse;
  }
  place.each([&](const auto& at) {
    constexpr int U = sizeof(at) / sizeof(at[0]);
    Pack<T, N> x[U], gy[U];
    load_packs(args.x, at, x);
    load_packs(args.gy, at, gy);
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const C g = widen(gy[u].v[k]);
        sums[k].v[0] += g;
        sums[k].v[1] = fused(g, widen(x[u].v[k]) - mean[k], sums[k].v[1]);
      }
  });
  line_merge<C>(sums, strips.across);
  if (place.line == 0 && place.positions > 0) {
    for (int k = 0; k < N; ++k) of_channel[place.column + k] = sums[k];
  }
  __syncthreads();
  if (partials != nullptr) {
    for (int c = int(threadIdx.x); c < place.groups * place.of_group; c += int(blockDim.x)) {
      const RowStatistics<C> s = statistics(c / place.of_group);
      const RowSums<C> own = of_channel[c];
      store_line<C>(partials, args.samples, args.channels, place.sample, place.first_channel() + c,
                    own.v[0], s.inverse * fused(-s.rest, own.v[0], own.v[1]));
    }
  }
  if (int(threadIdx.x) < place.groups) {
    const int group = threadIdx.x;
    RowSums<C> all{};
    for (int c = group * place.of_group; c < (group + 1) * place.of_group; ++c) {
      const C gamma = number_at(args.gamma, place.first_channel() + c, C(1));
      const RowSums<C> own = of_channel[c];
      all.v[0] = fused(gamma, own.v[0], all.v[0]);
      all.v[1] = fused(gamma, own.v[1], all.v[1]);
    }
    const RowGradient<C> g(statistics(group), all, C(place.of_group * args.positions),
                           args.centred);
    of_group[group] = {g.of_x, g.constant};
  }
  __syncthreads();
  if (place.positions == 0) return;
  C of_x[N], constant[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const GroupGradient<C> g = of_group[(place.column + k) / place.of_group];
    of_x[k] = g.of_x;
    constant[k] = g.constant;
  }
  place.each([&](const auto& at) {
    constexpr int U = sizeof(at) / sizeof(at[0]);
    Pack<T, N> x[U], gy[U];
    load_packs(args.x, at, x);
    load_packs(args.gy, at, gy);
#pragma unroll
    for (int u = 0; u < U; ++u) {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const C rest = fused(of_x[k], widen(x[u].v[k]) - mean[k], constant[k]);
        x[u].v[k] = Narrow<T>::from(fused(of_g[k], widen(gy[u].v[k]), rest));
      }
      static_cast<Pack<T, N>*>(args.y)[at[u]] = x[u];
    }
  });
}

}  // namespace

bool has_strips(const RowNormalizationArgs& args) {
  return args.inner == 1 && args.positions > 1 && args.groups > 1 && args.centred &&
         args.channels / args.groups <= kStripChannels / 2;
}

void launch_strips(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    constexpr int N = kColumnPack<T>;
    const Strips strips(args, N);
    const auto blocks = unsigned(args.samples * strips.count);
    if (strips.pack == 1)
      launch_kernel<strip_kernel<T, 1>>(blocks, kRowThreads, launch, args, strips);
    else
      launch_kernel<strip_kernel<T, N>>(blocks, kRowThreads, launch, args, strips);
  })
}

bool has_strip_gradient(const RowNormalizationArgs& args, const Launch& launch) {
  return has_strips(args) && args.samples * Strips(args, 1).count >= launch.multiprocessors;
}

void launch_strip_gradient(Float type, const RowNormalizationArgs& args,
                           const RowParameterSums& parameters, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    constexpr int N = kColumnPack<T>;
    const Strips strips(args, N);
    const auto blocks = unsigned(args.samples * strips.count);
    if (strips.pack == 1)
      launch_kernel<strip_gradient_kernel<T, 1>>(blocks, kRowThreads, launch, args,
                                                 parameters.partials, strips);
    else
      launch_kernel<strip_gradient_kernel<T, N>>(blocks, kRowThreads, launch, args,
                                                 parameters.partials, strips);
    sum_partials<Compute<T>>(parameters, args.channels, args.samples, launch);
  })
}

}  // namespace catena::gpu
