// Normalization of small groups of channels that are last in memory, forward and the gradient of x.
// A block takes a strip of adjacent groups of a sample, so that it reads whole lines of memory:
// each thread keeps to its channels, and what it finds is joined by channel and then by group. The
// sums of the gradient over a channel of a sample are its part of the gradients of gamma and beta.
// Strips that shared memory holds are read from memory once.
#include "backends/cuda/common/async_copy.cuh"
#include "backends/cuda/common/dynamic_shared.cuh"
#include "backends/cuda/normalization/moments.cuh"
#include "backends/cuda/normalization/parameter_lines.cuh"
#include "backends/cuda/normalization/row_walk.cuh"

namespace catena::gpu {
namespace {

constexpr int kStripChannels = 64;  // at most
constexpr int kPositionsAhead = 4;

constexpr int kLeastStripBytes = 32;  // of a position: a sector of memory
// Bytes of a block beside what it keeps, rounded up.
template <class T>
constexpr int64_t kOwnStripBytes = sizeof(T) == sizeof(double) ? 18 << 10 : 31 << 9;

// How the channels are cut: `channels` of a strip, in packs for `across` threads side by side, of
// which those behind the strip's end have nothing to do.
struct Strips {
  int channels, groups, across, pack;
  int64_t turns;        // packs of a thread, at most
  int64_t count, kept;  // kept: bytes in shared memory; 0: none

  Strips(const RowNormalizationArgs& args, int widest, int most_groups) : groups(most_groups) {
    const int of_group = int(args.channels / args.groups);
    if (groups > kStripChannels / of_group) groups = kStripChannels / of_group;
    if (groups > args.groups) groups = int(args.groups);
    channels = groups * of_group;
    pack = args.aligned && channels % widest == 0 && args.channels % widest == 0 ? widest : 1;
    across = power_of_two_from(channels / pack, kStripChannels);
    count = (args.groups + groups - 1) / groups;
    const int lines = kRowThreads / across;
    turns = (args.positions + lines - 1) / lines;
    kept = 0;
  }
};

// The widest strips of which shared memory holds `arrays` arrays, of two blocks of a multiprocessor
// if possible; narrower ones where the blocks would be few. Without such strips the widest ones.
template <class T>
Strips choose_strips(const RowNormalizationArgs& args, int arrays, const Launch& launch) {
  const Strips widest(args, kColumnPack<T>, kStripChannels);
  const int64_t group_bytes = args.channels / args.groups * int64_t(sizeof(T));
  for (const int blocks : {2, 1}) {
    const int64_t most = args.shared_memory / blocks - kOwnStripBytes<T>;
    Strips best = widest;
    for (int groups = widest.groups; groups >= 1; groups /= 2) {
      if (groups < widest.groups && groups * group_bytes < kLeastStripBytes) break;
      Strips strips(args, kColumnPack<T>, groups);
      const int64_t packs = arrays * strips.turns * kRowThreads;
      strips.kept = packs * strips.pack * int64_t(sizeof(T));
      if (strips.kept > most) continue;
      best = strips;
      if (args.samples * strips.count >= 2 * launch.multiprocessors) break;
    }
    if (best.kept > 0) return best;
  }
  return widest;
}

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
  // Calls visit(at, turn) for packs at[0], at[1], ... of the thread, of which the first is that of
  // this turn.
  template <class F>
  __device__ void each(F visit) const {
    int64_t p = line;
    int turn = 0;
    for (; p + (kPositionsAhead - 1) * lines < positions; p += kPositionsAhead * lines) {
      int64_t at[kPositionsAhead];
#pragma unroll
      for (int u = 0; u < kPositionsAhead; ++u) at[u] = base + (p + u * lines) * row_packs;
      visit(at, turn);
      turn += kPositionsAhead;
    }
    for (; p < positions; p += lines) {
      const int64_t one[1] = {base + p * row_packs};
      visit(one, turn++);
    }
  }
};

// An array's packs of a thread: in memory, or in shared memory as it has copied them.
template <class T, int N, bool kKept>
struct StripPacks {
  using P = Pack<T, N>;
  const void* base;
  P* kept;  // the block's
  __device__ StripPacks(const void* base, const Strips& strips, int array) : base(base) {
    kept = kKept ? reinterpret_cast<P*>(dynamic_shared()) + array * strips.turns * kRowThreads
                 : nullptr;
  }
  __device__ void copy(const StripPlace<N>& place) const {
    if constexpr (kKept)
      place.each([&](const auto& at, int turn) {
        constexpr int U = sizeof(at) / sizeof(at[0]);
#pragma unroll
        for (int u = 0; u < U; ++u)
          copy_ahead(kept + (turn + u) * kRowThreads + int(threadIdx.x),
                     static_cast<const P*>(base) + at[u]);
      });
  }
  template <int U>
  __device__ void load(const int64_t (&at)[U], int turn, P (&packs)[U]) const {
    if constexpr (kKept) {
#pragma unroll
      for (int u = 0; u < U; ++u) packs[u] = kept[(turn + u) * kRowThreads + int(threadIdx.x)];
    } else {
      load_packs(base, at, packs);
    }
  }
};

template <class T, int N, bool kKept>
__global__ void __launch_bounds__(kRowThreads)
    strip_kernel(RowNormalizationArgs args, Strips strips) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ Moments<C> of_channel[kStripChannels];
  __shared__ RowStatistics<C> of_group[kStripChannels];
  const StripPlace<N> place(args, strips);
  const StripPacks<T, N, kKept> packs(args.x, strips, 0);
  packs.copy(place);
  if (kKept) wait_for_copies();
  ShiftedSums<C> sums[N];
  int count = 0;
  place.each([&](const auto& at, int turn) {
    constexpr int U = sizeof(at) / sizeof(at[0]);
    Pack<T, N> p[U];
    packs.load(at, turn, p);
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
    scale[k] = parameter_at<T>(args.gamma, channel, C(1)) * s.inverse;
    shift[k] = fused(-s.rest, scale[k], parameter_at<T>(args.beta, channel, C(0)));
  }
  place.each([&](const auto& at, int turn) {
    constexpr int U = sizeof(at) / sizeof(at[0]);
    Pack<T, N> p[U];
    packs.load(at, turn, p);
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

template <class T, int N, bool kKept>
__global__ void __launch_bounds__(kRowThreads)
    strip_gradient_kernel(RowNormalizationArgs args, void* partials, Strips strips) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ RowSums<C> of_channel[kStripChannels];
  __shared__ GroupGradient<C> of_group[kStripChannels];
  const StripPlace<N> place(args, strips);
  const StripPacks<T, N, kKept> packs_x(args.x, strips, 0), packs_gy(args.gy, strips, 1);
  packs_x.copy(place);
  packs_gy.copy(place);
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
    of_g[k] =
        parameter_at<T>(args.gamma, place.first_channel() + place.column + k, C(1)) * s.inverse;
  }
  if (kKept) wait_for_copies();
  place.each([&](const auto& at, int turn) {
    constexpr int U = sizeof(at) / sizeof(at[0]);
    Pack<T, N> x[U], gy[U];
    packs_x.load(at, turn, x);
    packs_gy.load(at, turn, gy);
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
      const C gamma = parameter_at<T>(args.gamma, place.first_channel() + c, C(1));
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
  place.each([&](const auto& at, int turn) {
    constexpr int U = sizeof(at) / sizeof(at[0]);
    Pack<T, N> x[U], gy[U];
    packs_x.load(at, turn, x);
    packs_gy.load(at, turn, gy);
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

template <class T, int N>
void run(const RowNormalizationArgs& args, const Strips& strips, const Launch& launch) {
  const auto blocks = unsigned(args.samples * strips.count);
  if (strips.kept > 0)
    launch_with_shared<strip_kernel<T, N, true>>(blocks, kRowThreads, size_t(strips.kept), launch,
                                                 args, strips);
  else
    launch_kernel<strip_kernel<T, N, false>>(blocks, kRowThreads, launch, args, strips);
}

template <class T, int N>
void run_gradient(const RowNormalizationArgs& args, void* partials, const Strips& strips,
                  const Launch& launch) {
  const auto blocks = unsigned(args.samples * strips.count);
  if (strips.kept > 0)
    launch_with_shared<strip_gradient_kernel<T, N, true>>(blocks, kRowThreads, size_t(strips.kept),
                                                          launch, args, partials, strips);
  else
    launch_kernel<strip_gradient_kernel<T, N, false>>(blocks, kRowThreads, launch, args, partials,
                                                      strips);
}

}  // namespace

bool has_strips(const RowNormalizationArgs& args) {
  return args.inner == 1 && args.positions > 1 && args.groups > 1 && args.centred &&
         args.channels / args.groups <= kStripChannels / 2;
}

void launch_strips(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    const Strips strips = choose_strips<T>(args, 1, launch);
    if (strips.pack == 1)
      run<T, 1>(args, strips, launch);
    else
      run<T, kColumnPack<T>>(args, strips, launch);
  })
}

bool has_strip_gradient(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  if (!has_strips(args)) return false;
  if (!has_line_gradient(type, args)) return true;
  int64_t count = 0;
  CATENA_FLOAT_SWITCH(type, count = choose_strips<T>(args, 2, launch).count;)
  return args.samples * count >= launch.multiprocessors;
}

void launch_strip_gradient(Float type, const RowNormalizationArgs& args,
                           const RowParameterSums& parameters, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    const Strips strips = choose_strips<T>(args, 2, launch);
    if (strips.pack == 1)
      run_gradient<T, 1>(args, parameters.partials, strips, launch);
    else
      run_gradient<T, kColumnPack<T>>(args, parameters.partials, strips, launch);
    sum_partials<T>(parameters, args.channels, args.samples, launch);
  })
}

}  // namespace catena::gpu
