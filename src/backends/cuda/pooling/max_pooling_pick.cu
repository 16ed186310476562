// The element of an image at each place that max pooling kept.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/pooling/pooling_index.cuh"

namespace catena::gpu {
namespace {

template <class T, class Place, class Index>
__global__ void __launch_bounds__(kPoolingThreads)
    max_pooling_pick_kernel(PoolingArgs args, Sizes<Index> s, Grid<Index> grid) {
  wait_for_previous_kernel();
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < grid.count; i += step) {
    const Point<Index> p(Index(i), grid);
    const int place = int(static_cast<const Place*>(args.places)[i]);
    using D = Signed<Index>;
    const D w = place % s.kernel[2], rest = place / s.kernel[2];
    const D h = rest % s.kernel[1], d = rest / s.kernel[1];
    const Index at = s.at(p.image, Index(D(p.d) * s.stride[0] - s.pad[0] + d),
                          Index(D(p.h) * s.stride[1] - s.pad[1] + h),
                          Index(D(p.w) * s.stride[2] - s.pad[2] + w), s.in);
    static_cast<T*>(args.y)[i] = static_cast<const T*>(args.x)[at + p.pack];
  }
}

template <class T, class Place, class Index>
void run_pick(const PoolingArgs& args, const Launch& launch) {
  const Grid<Index> grid(args.sizes, args.sizes.out, 1);
  launch_kernel<&max_pooling_pick_kernel<T, Place, Index>>(
      loop_blocks(grid.count, kPoolingThreads, launch, kPoolingBlocks), kPoolingThreads, launch,
      args, Sizes<Index>(args.sizes), grid);
}

template <class T>
void pick(const PoolingArgs& args, const Launch& launch) {
  with_types(args.sizes, [&](auto place, auto index) {
    run_pick<T, decltype(place), decltype(index)>(args, launch);
  });
}

}  // namespace

void launch_max_pooling_pick(Float type, const PoolingArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, pick<T>(args, launch));
}

}  // namespace catena::gpu
