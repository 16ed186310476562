// Normalization of rows: the gradient of x.
#include "backends/cuda/normalization/row_walk.cuh"

namespace catena::gpu {
namespace {

constexpr int kKept = 2;  // packs of a thread in registers

template <class T, int N, bool kAdd>
__global__ void __launch_bounds__(kRowThreads, 2)
    row_gradient_kernel(RowNormalizationArgs args, int members) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ RowSums<C> shared[kMostGroups];
  const Members me(args, members);
  const Cursor<N> cursor(args, me.active ? me.row : 0, me.lane, members);
  const auto load = [&](int64_t pack) {
    return GradientPacks<T, N>{load_pack<T, N>(args.x, pack), load_pack<T, N>(args.gy, pack)};
  };
  GradientPacks<T, N> kept[kKept];
  load_kept(kept, cursor, me.active, load);
  RowStatistics<C> s;
  s.read(args, me.active ? me.row : 0);
  RowSums<C> sums{};
  each_pack(kept, cursor, me.active, load, [&](const GradientPacks<T, N>& p, const Cursor<N>& c) {
    const Parameters<T, N> gamma(args.gamma, c, C(1));
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C h = gamma.v[k] * widen(p.gy.v[k]);
      sums.v[0] += h;
      sums.v[1] = fused(h, widen(p.x.v[k]) - s.mean, sums.v[1]);
    }
  });
  sums = group_merge(sums, members);
  if (me.lane == 0) shared[me.group] = sums;
  __syncthreads();
  sums = shared[me.group];
  const RowGradient<C> gradient(s, sums, C(cursor.size()), args.centred);
  each_pack(kept, cursor, me.active, load, [&](const GradientPacks<T, N>& p, const Cursor<N>& c) {
    const Parameters<T, N> gamma(args.gamma, c, C(1));
    Pack<T, N> more;
    if constexpr (kAdd) more = load_pack<T, N>(args.gsum, c.pack());
    Pack<T, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C h = gamma.v[k] * widen(p.gy.v[k]);
      const C rest = fused(gradient.of_x, widen(p.x.v[k]) - s.mean, gradient.constant);
      C gx = fused(s.inverse, h, rest);
      if constexpr (kAdd) gx += widen(more.v[k]);
      result.v[k] = Narrow<T>::from(gx);
    }
    static_cast<Pack<T, N>*>(args.y)[c.pack()] = result;
  });
}

template <class T, int N>
void run(const RowNormalizationArgs& args, const RowGrid& grid, const Launch& launch) {
  const unsigned blocks = grid.blocks;
  if (args.has_sum())
    launch_kernel<row_gradient_kernel<T, N, true>>(blocks, grid.block, launch, args, grid.members);
  else
    launch_kernel<row_gradient_kernel<T, N, false>>(blocks, grid.block, launch, args, grid.members);
}

}  // namespace

void launch_row_gradient(Float type, const RowNormalizationArgs& args, const Launch& launch) {
  if (args.parts > 1) return launch_row_parts_gradient(type, args, launch);
  CATENA_FLOAT_SWITCH(type, {
    const RowGrid grid(args, kPack<T>, kKept);
    if (grid.pack == 1)
      run<T, 1>(args, grid, launch);
    else
      run<T, kPack<T>>(args, grid, launch);
  })
}

}  // namespace catena::gpu
