// A thread writes packs of 16 bytes at multiples of 16. It reads the two aligned packs in which
// their bytes are, and shifts them, so that memory bounds it and not loads of single elements.
#include "backends/cuda/matmul/line_copies.h"

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/quotient.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256, kPack = 16, kItem = 2, kItems = kPack / kItem;

struct alignas(kPack) Words {
  uint32_t v[4];
};

struct Job {
  LineCopy copy;
  jit::Divider packs, lines;  // of a line and of a matrix, of the result
  uint32_t count;             // of packs
  unsigned end;               // the first block of the next job
};
struct Jobs {
  Job v[kMostLineCopies];
};

// The pack that begins `shift` bytes behind the beginning of the first.
__device__ inline Words shifted(const Words& first, const Words& second, unsigned shift) {
  uint32_t x[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) x[i] = first.v[i], x[i + 4] = second.v[i];
  if (shift & 8) {
#pragma unroll
    for (int i = 0; i < 6; ++i) x[i] = x[i + 2];
  }
  if (shift & 4) {
#pragma unroll
    for (int i = 0; i < 5; ++i) x[i] = x[i + 1];
  }
  Words result;
#pragma unroll
  for (int i = 0; i < 4; ++i) result.v[i] = shift & 2 ? x[i] >> 16 | x[i + 1] << 16 : x[i];
  return result;
}

// A line on both sides. `valid`: how many bytes of it there are to read.
struct Line {
  const char* from;
  char* to;
  int64_t valid, length;

  // Bytes [begin, begin + 16) of the line, of which the line may end or begin within.
  __device__ void copy_items(int64_t begin) const {
    for (int i = 0; i < kItems; ++i) {
      const int64_t at = begin + i * kItem;
      if (at < 0 || at >= length) continue;
      *reinterpret_cast<uint16_t*>(to + at) =
          at < valid ? *reinterpret_cast<const uint16_t*>(from + at) : uint16_t(0);
    }
  }
  __device__ void copy_pack(int64_t begin) const {
    if (begin < 0 || begin + kPack > length) return copy_items(begin);
    Words* const result = reinterpret_cast<Words*>(to + begin);
    if (begin >= valid) {
      *result = Words{};
      return;
    }
    const unsigned shift = unsigned(reinterpret_cast<uintptr_t>(from + begin) % kPack);
    const int64_t first = begin - shift;  // nothing outside the line is read
    const Words* const source = reinterpret_cast<const Words*>(from + first);
    if (shift == 0 && begin + kPack <= valid)
      *result = *source;
    else if (first >= 0 && first + 2 * kPack <= valid)
      *result = shifted(source[0], source[1], shift);
    else
      copy_items(begin);
  }
};

__device__ inline void copy_pack(const Job& job, uint32_t i) {
  const LineCopy& copy = job.copy;
  uint32_t pack, line;
  const uint32_t all = jit::divide(i, job.packs, pack), batch = jit::divide(all, job.lines, line);
  char* const to = copy.to.data + batch * copy.to.batch_step + line * copy.to.step;
  const char* const from = copy.from.data + batch * copy.from.batch_step + line * copy.from.step;
  const int64_t before = int64_t(reinterpret_cast<uintptr_t>(to) % kPack);
  Line{from, to, line < copy.from.lines ? copy.from.line : 0, copy.to.line}.copy_pack(
      int64_t(pack) * kPack - before);
}

__global__ void __launch_bounds__(kThreads) line_copies_kernel(Jobs jobs) {
  wait_for_previous_kernel();
  int j = 0;
  while (blockIdx.x >= jobs.v[j].end) ++j;
  const Job& job = jobs.v[j];
  const unsigned begin = j == 0 ? 0 : jobs.v[j - 1].end;
  const uint32_t stride = (job.end - begin) * kThreads;
  for (uint32_t i = (blockIdx.x - begin) * kThreads + threadIdx.x; i < job.count; i += stride)
    copy_pack(job, i);
}

Job job_of(LineCopy copy) {
  if (copy.from.line > copy.to.line) copy.from.line = copy.to.line;
  const int64_t bytes = copy.to.line;
  const bool aligned = reinterpret_cast<uintptr_t>(copy.to.data) % kPack == 0 &&
                       copy.to.step % kPack == 0 && copy.to.batch_step % kPack == 0;
  const int64_t packs = (bytes + kPack - 1) / kPack + (aligned ? 0 : 1);
  return {copy, jit::make_divider(uint32_t(packs)), jit::make_divider(uint32_t(copy.to.lines)),
          uint32_t(packs * copy.to.lines * copy.batch), 0};
}

}  // namespace

void launch_line_copies(const LineCopy* copies, int count, const Launch& launch) {
  Jobs jobs{};
  unsigned blocks = 0;
  for (int j = 0; j < count; ++j) {
    jobs.v[j] = job_of(copies[j]);
    blocks += loop_blocks(jobs.v[j].count, kThreads, launch, 8);
    jobs.v[j].end = blocks;
  }
  if (blocks > 0) launch_kernel<line_copies_kernel>(blocks, kThreads, launch, jobs);
}

}  // namespace catena::gpu
