// One warp with few registers, so that it finds a place beside kernels that fill a multiprocessor.
// Counts only grow: a rank that is one meeting ahead takes nothing from those that wait.
#include "meeting_kernel.h"
#include "peer_block.cuh"

namespace catena::comm::nccl {

namespace {

constexpr unsigned kThreads = 32;
static_assert(kMostRanks <= kThreads);

// The lock of the state is the highest bit of counts, which wrap below it.
__device__ bool has_come(uint32_t seen, uint32_t count) {
  return static_cast<int32_t>((seen - count) << 1) >= 0;
}

// Each thread waits for one rank.
__global__ void __launch_bounds__(kThreads)
    meeting_kernel(const __grid_constant__ Meeting meeting) {
  __shared__ uint32_t count;
  const int r = static_cast<int>(threadIdx.x);
  if (r == 0) count = begin_call(meeting.state);
  __syncwarp();
  if (r < meeting.ranks && r != meeting.rank) {
    __threadfence_system();
    *static_cast<volatile uint32_t*>(meeting.counts[r] + meeting.rank) = count;
    const volatile uint32_t* const seen = meeting.counts[meeting.rank] + r;
    while (!has_come(*seen, count) && !stopped(meeting.state)) {
    }
    __threadfence_system();
  }
  __syncwarp();
  if (r == 0) end_call(meeting.state, count);
}

}  // namespace

cudaError_t launch_meeting(const Meeting& meeting, cudaStream_t stream) {
  meeting_kernel<<<1, kThreads, 0, stream>>>(meeting);
  return cudaGetLastError();
}

}  // namespace catena::comm::nccl
