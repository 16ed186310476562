// Each block works on its part of each slice, together with the blocks of its number of the other
// ranks:
//   1. it writes this rank's operands of every other slice into the memory of that slice's rank;
//   2. when those of this rank's slice have come, it adds them and writes the sums to all ranks,
//      straight into their arrays where they are mapped;
//   3. when the sums of all other slices have come, it copies them to the array if need be.
// In a gather each rank has its slice instead of sums, and in a scatter it keeps its sums.
// Everything that crosses to another GPU is written, not read: nobody waits for an answer, so that
// few blocks fill the links.
//
// One set of places is enough. Before a rank's operands of the next call come, it has passed 3 of
// this one, so that all others have passed 2, and read what had come; and before its sums come, it
// has operands of the next call of all others, which have then passed 3.
#include "elements.cuh"
#include "peer_block.cuh"
#include "two_shot_kernel.h"

namespace catena::comm::nccl {

namespace {

__device__ void set_mark(uint32_t* place, uint32_t mark) {
  asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(place), "r"(mark) : "memory");
}

__device__ void wait_for_mark(const uint32_t* place, uint32_t mark, const BlockState* state) {
  for (int tries = 0;; ++tries) {
    uint32_t seen;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(seen) : "l"(place) : "memory");
    if (seen == mark || ((tries & 255) == 255 && stopped(state))) return;
  }
}

// The work of one block. kMost: ranks at most, for which loops are unrolled.
template <class T, int kMost>
struct Block {
  static constexpr int kCount = Elements<T>::kCount;
  // Packs of a slice that a thread has under way at once.
  static constexpr size_t kAtOnce = kMost == 2 ? 4 : kMost == 4 ? 2 : 1;
  static constexpr size_t kStep = kAtOnce * kTwoShotThreads;

  const TwoShot& parts;
  const TwoShotCall& of;
  const size_t begin, end;  // of the part, in each slice

  __device__ Block(const TwoShot& all, const TwoShotCall& call)
      : parts(all),
        of(call),
        begin(min(blockIdx.x * call.part, call.slice)),
        end(min(begin + call.part, call.slice)) {}

  // The q-th rank after this one, so that not all write to one at once.
  __device__ int after(int q) const {
    const int r = parts.rank + q;
    return r < parts.ranks ? r : r - parts.ranks;
  }
  __device__ size_t first(int slice) const { return slice * of.stride + begin; }
  __device__ bool is_whole(size_t pack) const {
    return pack + 1 < of.packs || of.in_last == kCount;
  }
  // In the memory of rank `at`, for this block: what concerns rank `from`.
  __device__ uint4* place(size_t area, int at, int from) const {
    return reinterpret_cast<uint4*>(parts.memory[at] + area) +
           (size_t(blockIdx.x) * parts.ranks + from) * parts.block_packs;
  }
  __device__ BlockSignal* signal(int at, int from) const {
    return reinterpret_cast<BlockSignal*>(parts.memory[at] + parts.signals_at) +
           blockIdx.x * kMostRanks + from;
  }

  // A pack of this rank's operand, multiplied by its weight.
  __device__ uint4 load(size_t pack) const {
    const char* from = static_cast<const char*>(of.in) + pack * kPackBytes;
    uint4 result = {0, 0, 0, 0};
    if (of.aligned_in && is_whole(pack)) {
      result = *reinterpret_cast<const uint4*>(from);
    } else {
      T* to = reinterpret_cast<T*>(&result);
#pragma unroll
      for (int k = 0; k < kCount; ++k)
        if (is_whole(pack) || k < of.in_last) to[k] = reinterpret_cast<const T*>(from)[k];
    }
    if (of.weight == 1) return result;
    Elements<T> values(result);
#pragma unroll
    for (int k = 0; k < kCount; ++k) values.of[k] = __fmul_rn(of.weight, values.of[k]);
    return values.pack();
  }
  __device__ void store(char* array, size_t pack, const uint4& value, bool aligned) const {
    char* to = array + pack * kPackBytes;
    if (aligned && is_whole(pack)) {
      *reinterpret_cast<uint4*>(to) = value;
      return;
    }
    const T* from = reinterpret_cast<const T*>(&value);
#pragma unroll
    for (int k = 0; k < kCount; ++k)
      if (is_whole(pack) || k < of.in_last) reinterpret_cast<T*>(to)[k] = from[k];
  }

  __device__ void send_operands() const {
    for (size_t i = threadIdx.x; begin + i < end; i += kStep) {
      uint4 packs[kAtOnce][kMost - 1];
#pragma unroll
      for (size_t u = 0; u < kAtOnce; ++u) {
#pragma unroll
        for (int q = 1; q < kMost; ++q) {
          const size_t j = i + u * kTwoShotThreads;
          if (q < parts.ranks && begin + j < end && first(after(q)) + j < of.packs)
            packs[u][q - 1] = load(first(after(q)) + j);
        }
      }
#pragma unroll
      for (size_t u = 0; u < kAtOnce; ++u) {
#pragma unroll
        for (int q = 1; q < kMost; ++q) {
          const size_t j = i + u * kTwoShotThreads;
          if (q < parts.ranks && begin + j < end && first(after(q)) + j < of.packs)
            place(parts.operands_at, after(q), parts.rank)[j] = packs[u][q - 1];
        }
      }
    }
  }

  // In the order of the ranks, so that the sum does not depend on who computes it.
  __device__ uint4 sum(const uint4 (&packs)[kMost]) const {
    Elements<T> total(packs[0]);
#pragma unroll
    for (int r = 1; r < kMost; ++r) {
      if (r >= parts.ranks) continue;
      const Elements<T> more(packs[r]);
#pragma unroll
      for (int k = 0; k < kCount; ++k) total.of[k] = __fadd_rn(total.of[k], more.of[k]);
    }
    if (of.divisor != 1) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) total.of[k] = __fdiv_rn(total.of[k], of.divisor);
    }
    return total.pack();
  }

  // Pack j of the part of this rank's slice, to the array and to those of the others; targets[r] is
  // that of rank r, or null.
  __device__ void send(size_t j, const uint4& result, char* const* targets) const {
    const size_t pack = first(parts.rank) + j;
    store(static_cast<char*>(of.out), pack, result, of.aligned_out);
    if (of.kind == TwoShotKind::kReduceScatter) return;
#pragma unroll
    for (int q = 1; q < kMost; ++q) {
      if (q >= parts.ranks) continue;
      const int to = after(q);
      if (targets[to])
        store(targets[to], pack, result, true);
      else
        place(parts.sums_at, to, parts.rank)[j] = result;
    }
  }

  __device__ void send_sums(char* const* targets) const {
    const size_t own = first(parts.rank);
    for (size_t i = threadIdx.x; begin + i < end && own + i < of.packs; i += kStep) {
      uint4 packs[kAtOnce][kMost];
#pragma unroll
      for (size_t u = 0; u < kAtOnce; ++u) {
        const size_t j = i + u * kTwoShotThreads;
        if (begin + j >= end || own + j >= of.packs) continue;
#pragma unroll
        for (int r = 0; r < kMost; ++r) {
          if (r >= parts.ranks) continue;
          packs[u][r] =
              r == parts.rank ? load(own + j) : __ldcg(place(parts.operands_at, parts.rank, r) + j);
        }
      }
#pragma unroll
      for (size_t u = 0; u < kAtOnce; ++u) {
        const size_t j = i + u * kTwoShotThreads;
        if (begin + j < end && own + j < of.packs) send(j, sum(packs[u]), targets);
      }
    }
  }

  // Of a gather.
  __device__ void send_slice(char* const* targets) const {
    const size_t own = first(parts.rank);
    for (size_t i = threadIdx.x; begin + i < end; i += kTwoShotThreads)
      send(i, load(own + i), targets);
  }

  __device__ void fetch_sums() const {
    for (int q = 1; q < parts.ranks; ++q) {
      const int slice = after(q);
      const uint4* from = place(parts.sums_at, parts.rank, slice);
      for (size_t i = threadIdx.x; begin + i < end && first(slice) + i < of.packs;
           i += kTwoShotThreads)
        store(static_cast<char*>(of.out), first(slice) + i, __ldcg(from + i), of.aligned_out);
    }
  }
};

template <class T, int kMost>
__global__ void __launch_bounds__(kTwoShotThreads)
    two_shot_kernel(const __grid_constant__ TwoShot parts, const __grid_constant__ TwoShotCall of) {
  __shared__ uint32_t call;
  __shared__ char* targets[kMostRanks];
  const Block<T, kMost> block(parts, of);
  BlockState* const state = reinterpret_cast<BlockState*>(parts.memory[parts.rank]) + blockIdx.x;
  if (threadIdx.x == 0) call = begin_call(state);
  __syncthreads();
  const uint32_t mark = call ^ of.number;
  const int peer = static_cast<int>(threadIdx.x);  // with whom a thread exchanges signals
  const bool signals = peer < parts.ranks && peer != parts.rank;

  if (of.kind != TwoShotKind::kAllGather) block.send_operands();
  __syncthreads();
  if (signals) {
    BlockSignal* const there = block.signal(peer, parts.rank);
    const auto target = of.direct ? reinterpret_cast<unsigned long long>(of.targets[peer]) : 0;
    *reinterpret_cast<volatile unsigned long long*>(&there->target) = target;
    set_mark(&there->operands, mark);
    BlockSignal* const here = block.signal(parts.rank, peer);
    wait_for_mark(&here->operands, mark, state);
    targets[peer] = stopped(state)
                        ? nullptr
                        : reinterpret_cast<char*>(
                              *reinterpret_cast<volatile unsigned long long*>(&here->target));
  }
  __syncthreads();

  if (of.kind == TwoShotKind::kAllGather)
    block.send_slice(targets);
  else
    block.send_sums(targets);
  __syncthreads();
  if (signals) {
    set_mark(&block.signal(peer, parts.rank)->sums, mark);
    wait_for_mark(&block.signal(parts.rank, peer)->sums, mark, state);
  }
  __syncthreads();
  if (!of.direct && of.kind != TwoShotKind::kReduceScatter) block.fetch_sums();

  __syncthreads();
  if (threadIdx.x == 0) end_call(state, call);
}

template <class T>
cudaError_t launch(const TwoShot& parts, const TwoShotCall& call, cudaStream_t stream) {
  if (parts.ranks == 2)
    two_shot_kernel<T, 2><<<call.blocks, kTwoShotThreads, 0, stream>>>(parts, call);
  else if (parts.ranks <= 4)
    two_shot_kernel<T, 4><<<call.blocks, kTwoShotThreads, 0, stream>>>(parts, call);
  else
    two_shot_kernel<T, 8><<<call.blocks, kTwoShotThreads, 0, stream>>>(parts, call);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_two_shot(const TwoShot& parts, const TwoShotCall& call, cudaStream_t stream) {
  switch (call.type) {
    case SumType::kFloat16: return launch<__half>(parts, call, stream);
    case SumType::kBFloat16: return launch<__nv_bfloat16>(parts, call, stream);
    default: return launch<float>(parts, call, stream);
  }
}

}  // namespace catena::comm::nccl
