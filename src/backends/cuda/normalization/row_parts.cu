// Normalization of few long rows, forward and the gradient of x: several blocks take a part of a
// row each. A first kernel finds what they need of the whole row, a second one joins that and
// writes the result.
#include "backends/cuda/normalization/moments.cuh"
#include "backends/cuda/normalization/row_walk.cuh"

namespace catena::gpu {
namespace {

constexpr int kMostParts = 32;    // a warp joins them
constexpr int kPacksOfPart = 16;  // the least that a thread takes

// A block's part of a row.
struct Part {
  int64_t row, first;  // first: of the row's parts, where the blocks leave what they found
  int lane, members;
  __device__ explicit Part(int parts)
      : row(blockIdx.x / unsigned(parts)),
        first(row * parts),
        lane(int(blockIdx.x % unsigned(parts)) * kRowThreads + int(threadIdx.x)),
        members(parts * kRowThreads) {}
};

// Joins the results of a row's parts, for all threads of the block.
template <class Value>
__device__ Value join_parts(const void* partials, const Part& part, int parts, Value* shared) {
  if (threadIdx.x < 32) {
    Value v{};
    if (int(threadIdx.x) < parts) v = static_cast<const Value*>(partials)[part.first + threadIdx.x];
    v = warp_merge(v);
    if (threadIdx.x == 0) *shared = v;
  }
  __syncthreads();
  return *shared;
}

template <class T, int N>
__global__ void __launch_bounds__(kRowThreads) part_moments(RowNormalizationArgs args, int parts) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const Part part(parts);
  const Cursor<N> cursor(args, part.row, part.lane, part.members);
  const auto load = [&](int64_t pack) { return load_pack<T, N>(args.x, pack); };
  Pack<T, N> kept[4];
  load_kept(kept, cursor, true, load);
  ShiftedSums<C> sums;
  if (args.centred) sums.shift = widen(kept[0].v[0]);
  int count = 0;
  each_pack(kept, cursor, true, load, [&](const Pack<T, N>& p, const Cursor<N>&) {
    count += N;
#pragma unroll
    for (int k = 0; k < N; ++k) sums.add(widen(p.v[k]));
  });
  Moments<C> found = sums.moments(count);
  // Squares about zero do not lose those of the mean.
  if (!args.centred && count > 0) found = {C(count), {C(0), sums.dd, C(0)}};
  found = group_merge(found, kRowThreads);
  if (threadIdx.x == 0) static_cast<Moments<C>*>(args.partials)[blockIdx.x] = found;
}

template <class T, int N>
__global__ void __launch_bounds__(kRowThreads) part_apply(RowNormalizationArgs args, int parts) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ Moments<C> shared;
  const Part part(parts);
  const Cursor<N> cursor(args, part.row, part.lane, part.members);
  const auto load = [&](int64_t pack) { return load_pack<T, N>(args.x, pack); };
  Pack<T, N> kept[4];
  load_kept(kept, cursor, true, load);
  const Moments<C> found = join_parts(args.partials, part, parts, &shared);
  const C variance = found.v[1] / C(cursor.size());
  const RowStatistics<C> s{C(1) / root(variance + C(args.eps)), found.v[0], found.v[2]};
  if (part.lane == 0) s.write(args, part.row);
  const C shift = -s.rest * s.inverse;
  each_pack(kept, cursor, true, load, [&](const Pack<T, N>& p, const Cursor<N>& c) {
    const Parameters<T, N> gamma(args.gamma, c, C(1)), beta(args.beta, c, C(0));
    Pack<T, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C xhat = fused(widen(p.v[k]) - s.mean, s.inverse, shift);
      result.v[k] = Narrow<T>::from(fused(xhat, gamma.v[k], beta.v[k]));
    }
    static_cast<Pack<T, N>*>(args.y)[c.pack()] = result;
  });
}

// Calls visit(packs of x and gy, cursor) for the block's part.
template <class T, int N, class F>
__device__ void each_gradient_pack(const RowNormalizationArgs& args, const Cursor<N>& cursor,
                                   F visit) {
  const auto load = [&](int64_t pack) {
    return GradientPacks<T, N>{load_pack<T, N>(args.x, pack), load_pack<T, N>(args.gy, pack)};
  };
  GradientPacks<T, N> kept[2];
  load_kept(kept, cursor, true, load);
  each_pack(kept, cursor, true, load, visit);
}

template <class T, int N>
__global__ void __launch_bounds__(kRowThreads) part_sums(RowNormalizationArgs args, int parts) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  const Part part(parts);
  const Cursor<N> cursor(args, part.row, part.lane, part.members);
  RowStatistics<C> s;
  s.read(args, part.row);
  RowSums<C> sums{};
  each_gradient_pack<T>(args, cursor, [&](const GradientPacks<T, N>& p, const Cursor<N>& c) {
    const Parameters<T, N> gamma(args.gamma, c, C(1));
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C h = gamma.v[k] * widen(p.gy.v[k]);
      sums.v[0] += h;
      sums.v[1] = fused(h, widen(p.x.v[k]) - s.mean, sums.v[1]);
    }
  });
  sums = group_merge(sums, kRowThreads);
  if (threadIdx.x == 0) static_cast<RowSums<C>*>(args.partials)[blockIdx.x] = sums;
}

template <class T, int N>
__global__ void __launch_bounds__(kRowThreads) part_gradient(RowNormalizationArgs args, int parts) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ RowSums<C> shared;
  const Part part(parts);
  const Cursor<N> cursor(args, part.row, part.lane, part.members);
  RowStatistics<C> s;
  s.read(args, part.row);
  const RowSums<C> sums = join_parts(args.partials, part, parts, &shared);
  const RowGradient<C> gradient(s, sums, C(cursor.size()), args.centred);
  each_gradient_pack<T>(args, cursor, [&](const GradientPacks<T, N>& p, const Cursor<N>& c) {
    const Parameters<T, N> gamma(args.gamma, c, C(1));
    Pack<T, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C h = gamma.v[k] * widen(p.gy.v[k]);
      const C rest = fused(gradient.of_x, widen(p.x.v[k]) - s.mean, gradient.constant);
      result.v[k] = Narrow<T>::from(fused(s.inverse, h, rest));
    }
    static_cast<Pack<T, N>*>(args.y)[c.pack()] = result;
  });
}

template <class T, int N>
void launch_forward(const RowNormalizationArgs& args, const Launch& launch) {
  const auto blocks = unsigned(args.samples * args.groups * args.parts);
  launch_kernel<part_moments<T, N>>(blocks, kRowThreads, launch, args, args.parts);
  launch_kernel<part_apply<T, N>>(blocks, kRowThreads, launch, args, args.parts);
}
template <class T, int N>
void launch_backward(const RowNormalizationArgs& args, const Launch& launch) {
  const auto blocks = unsigned(args.samples * args.groups * args.parts);
  launch_kernel<part_sums<T, N>>(blocks, kRowThreads, launch, args, args.parts);
  launch_kernel<part_gradient<T, N>>(blocks, kRowThreads, launch, args, args.parts);
}

}  // namespace

int row_parts(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  const int64_t rows = args.samples * args.groups, multiprocessors = launch.multiprocessors;
  if (has_strips(args) || rows >= multiprocessors) return 1;
  int64_t packs = 1;
  CATENA_FLOAT_SWITCH(type, packs = args.channels / args.groups * args.positions * args.inner /
                                    RowGrid(args, kPack<T>, 1).pack;)
  const int64_t wanted = 4 * multiprocessors / rows, most = packs / (kRowThreads * kPacksOfPart);
  const int64_t parts = wanted < most ? wanted : most;
  return int(parts < 1 ? 1 : parts < kMostParts ? parts : kMostParts);
}

void launch_row_parts(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    if (RowGrid(args, kPack<T>, 1).pack == 1)
      launch_forward<T, 1>(args, launch);
    else
      launch_forward<T, kPack<T>>(args, launch);
  })
}

void launch_row_parts_gradient(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    if (RowGrid(args, kPack<T>, 1).pack == 1)
      launch_backward<T, 1>(args, launch);
    else
      launch_backward<T, kPack<T>>(args, launch);
  })
}

}  // namespace catena::gpu
