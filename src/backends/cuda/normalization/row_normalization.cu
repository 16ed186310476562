// Normalization of rows, forward.
#include "backends/cuda/normalization/moments.cuh"
#include "backends/cuda/normalization/row_walk.cuh"

namespace catena::gpu {
namespace {

constexpr int kKept = 4;  // packs of a thread in registers

// A pack of what is normalized: that of x, or of the sum, which is written.
template <bool kAdd, class T, int N>
__device__ Pack<T, N> load_numbers(const RowNormalizationArgs& args, int64_t pack) {
  Pack<T, N> numbers = load_pack<T, N>(args.x, pack);
  if constexpr (kAdd) {
    const Pack<T, N> more = load_pack<T, N>(args.residual, pack);
#pragma unroll
    for (int k = 0; k < N; ++k)
      numbers.v[k] = Narrow<T>::from(widen(numbers.v[k]) + widen(more.v[k]));
    static_cast<Pack<T, N>*>(args.sum)[pack] = numbers;
  }
  return numbers;
}

template <class T, int N, bool kAdd>
__global__ void __launch_bounds__(kRowThreads, 2)
    row_kernel(RowNormalizationArgs args, int members) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ RowStatistics<C> shared[kMostGroups];
  const Members me(args, members);
  const Cursor<N> cursor(args, me.active ? me.row : 0, me.lane, members);
  const auto load = [&](int64_t pack) { return load_numbers<kAdd, T, N>(args, pack); };
  Pack<T, N> kept[kKept];
  load_kept(kept, cursor, me.active, load);
  ShiftedSums<C> sums;
  if (args.centred) sums.shift = widen(kept[0].v[0]);
  int count = 0;
  each_pack(kept, cursor, me.active, load, [&](const Pack<T, N>& p, const Cursor<N>&) {
    count += N;
#pragma unroll
    for (int k = 0; k < N; ++k) sums.add(widen(p.v[k]));
  });
  Moments<C> found = sums.moments(count);
  // Squares about zero do not lose those of the mean.
  if (!args.centred && count > 0) found = {C(count), {C(0), sums.dd, C(0)}};
  found = group_merge(found, members);
  if (me.lane == 0) {
    const C variance = found.v[1] / C(cursor.size());
    const RowStatistics<C> s{C(1) / root(variance + C(args.eps)), found.v[0], found.v[2]};
    shared[me.group] = s;
    if (me.active) s.write(args, me.row);
  }
  __syncthreads();
  const RowStatistics<C> s = shared[me.group];
  const C shift = -s.rest * s.inverse;
  each_pack(kept, cursor, me.active, load, [&](const Pack<T, N>& p, const Cursor<N>& c) {
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

template <class T, int N>
void run(const RowNormalizationArgs& args, const RowGrid& grid, const Launch& launch) {
  if (args.has_sum())
    launch_kernel<row_kernel<T, N, true>>(grid.blocks, grid.block, launch, args, grid.members);
  else
    launch_kernel<row_kernel<T, N, false>>(grid.blocks, grid.block, launch, args, grid.members);
}

}  // namespace

void launch_row_normalization(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  if (args.parts > 1) return launch_row_parts(type, args, launch);
  if (!args.has_sum() && has_strips(args)) return launch_strips(type, args, launch);
  if (has_plain_rows(type, args)) return launch_plain_rows(type, args, launch);
  if (!args.has_sum() && launch_kept_rows(type, args, launch)) return;
  CATENA_FLOAT_SWITCH(type, {
    const RowGrid grid(args, kPack<T>, kKept);
    if (grid.pack == 1)
      run<T, 1>(args, grid, launch);
    else
      run<T, kPack<T>>(args, grid, launch);
  })
}

}  // namespace catena::gpu
