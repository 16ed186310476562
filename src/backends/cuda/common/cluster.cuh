// Thread block clusters: blocks that run at the same time, near one another, and write to one
// another's shared memory. GPUs from compute capability 9.0 on have them.
#pragma once

#include "backends/cuda/common/dynamic_shared.cuh"

namespace catena::gpu {
namespace {

// The place of the running block in its cluster.
__device__ inline int block_of_cluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  int block;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
  return block;
#else
  return 0;
#endif
}

// All threads of the cluster wait for one another: each says that it is there, and later waits
// until all have. Writes to shared memory before the first, to that of other blocks too, are seen
// after the second.
__device__ inline void arrive_at_cluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ inline void wait_for_cluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Sets the number that the block `block` of the cluster has where the running one has `place`, in
// shared memory. That block must have begun, and must not end before it meets the running one.
__device__ inline void store_in_block(float* place, int block, float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const unsigned here = unsigned(__cvta_generic_to_shared(place));
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(block));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(v) : "memory");
#endif
}

// The blocks of a cluster: how many, their threads and their bytes of dynamic shared memory, beside
// which a kernel declares none. number: of the shape among those that a kernel has.
struct ClusterShape {
  int number, blocks, threads;
  size_t bytes;
};
constexpr int kMostClusterShapes = 8;

// The configuration of a launch, whose attributes live as long as it does.
struct ClusterLaunch {
  cudaLaunchConfig_t config{};
  cudaLaunchAttribute attributes[2] = {};
  ClusterLaunch(const ClusterShape& shape, unsigned clusters) {
    config.gridDim = clusters * unsigned(shape.blocks);
    config.blockDim = unsigned(shape.threads);
    config.dynamicSmemBytes = shape.bytes;
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = unsigned(shape.blocks);
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    config.attrs = attributes;
    config.numAttrs = 1;
  }
  ClusterLaunch(const ClusterLaunch&) = delete;
  ClusterLaunch& operator=(const ClusterLaunch&) = delete;
};

// Asks CUDA for most_clusters(), and makes the kernel ready for launches of the shape.
template <auto kKernel>
int find_most_clusters(const ClusterShape& shape) {
  const RelaxedMode relaxed;  // the calls may load the kernel
  constexpr int kPortableBlocks = 8;
  ClusterLaunch cluster(shape, 1);
  int device = 0, bytes = 0, most = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  // All shapes of a kernel allow the same.
  if ((shape.blocks <= kPortableBlocks ||
       cudaFuncSetAttribute(kKernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) ==
           cudaSuccess) &&
      allow_shared<kKernel>(size_t(bytes)) == cudaSuccess &&
      cudaOccupancyMaxActiveClusters(&most, kKernel, &cluster.config) == cudaSuccess)
    return most;
  cudaGetLastError();  // other kernels take the work
  return 0;
}

// The clusters of this shape that run at a time on the launch's device, the current one; 0 where it
// cannot run them. The answer is kept for each of the first devices; on others it is 0.
template <auto kKernel>
int most_clusters(const ClusterShape& shape, const Launch& launch) {
  static std::atomic<int> answers[16][kMostClusterShapes];  // one more than the answer; 0: unknown
  if (launch.device >= 16 || !is_code_for<kKernel, 90>(launch.device)) return 0;
  std::atomic<int>& answer = answers[launch.device][shape.number];
  int known = answer.load(std::memory_order_relaxed);
  if (known == 0) {
    known = 1 + find_most_clusters<kKernel>(shape);
    answer.store(known, std::memory_order_relaxed);
  }
  return known - 1;
}

// For shapes of which most_clusters() has said that they run.
template <auto kKernel, class... Args>
void launch_clusters(const ClusterShape& shape, unsigned clusters, const Launch& launch,
                     const Args&... args) {
  ClusterLaunch cluster(shape, clusters);
  cluster.config.stream = launch.stream;
  if (launch.early) {
    cudaLaunchAttribute& early = cluster.attributes[cluster.config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchKernelEx(&cluster.config, kKernel, args...);  // check_launch() reports its error
}

}  // namespace
}  // namespace catena::gpu
