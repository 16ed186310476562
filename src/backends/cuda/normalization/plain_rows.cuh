// Plain rows: contiguous, short enough for the registers of a block, and with a gamma for each
// element or one for the row, which then is a channel of a sample. Some threads take a row, each
// some of its packs of 16 bytes, and go on to a next one, which is on its way while this one is
// summed.
#pragma once

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/normalization/row_walk.cuh"

namespace catena::gpu {
namespace {

#ifndef CATENA_PLAIN_THREADS
#define CATENA_PLAIN_THREADS 512
#endif
constexpr int kPlainThreads = CATENA_PLAIN_THREADS;  // at most, of a row and of a block
constexpr int kPlainWarps = kPlainThreads / 32;
constexpr int kMostElements = 16 * kPlainThreads;  // of a row
constexpr int64_t kMostRows = 1 << 30;             // so that their numbers are ints

// Whether rows are channels of samples.
inline bool has_channel_rows(const RowNormalizationArgs& args) {
  return args.inner > 1 && args.groups == args.channels;
}

// Elements of a row.
inline int64_t row_size(const RowNormalizationArgs& args) {
  return has_channel_rows(args) ? args.inner : args.channels;
}

// Whether rows are contiguous packs of 16 bytes that have a gamma for each element or are channels.
inline bool has_whole_packs(Float type, const RowNormalizationArgs& args) {
  return type != Float::kF64 && args.aligned && args.positions == 1 &&
         (has_channel_rows(args) || (args.inner == 1 && args.groups == 1)) &&
         args.samples * args.groups <= kMostRows &&
         row_size(args) % (type == Float::kF32 ? kPack<float> : kPack<__half>) == 0;
}

// use(T()) for the storage type T of such rows.
template <class Use>
auto with_storage(Float type, Use use) {
  switch (type) {
    case Float::kF16: return use(__half());
    case Float::kBf16: return use(__nv_bfloat16());
    default: return use(float());
  }
}

// How rows are dealt out.
struct PlainPlan {
  int rows, row_packs, members, block;
  unsigned blocks;
  int turns;  // rows that a thread goes through
};

// `members` threads for a row in blocks of `block`, of which as many as run at a time take all
// rows.
inline PlainPlan plan_rows(const RowNormalizationArgs& args, int pack, int members, int block,
                           int64_t at_a_time) {
  PlainPlan p{};
  p.rows = int(args.samples * args.groups);
  p.row_packs = int((has_channel_rows(args) ? args.inner : args.channels) / pack);
  p.members = members;
  p.block = block;
  const int groups = block / members, wanted = (p.rows + groups - 1) / groups;
  p.blocks = unsigned(wanted < at_a_time ? wanted : at_a_time);
  p.turns = (wanted - 1) / int(p.blocks) + 1;
  return p;
}

// `packs`: of a thread. `threads`: of a block, unless a row needs more; `resident`: of a
// multiprocessor.
inline PlainPlan plan_plain_rows(const RowNormalizationArgs& args, int pack, int packs, int threads,
                                 int resident, const Launch& launch) {
  const int row_packs = int((has_channel_rows(args) ? args.inner : args.channels) / pack);
  const int members = power_of_two_from((row_packs + packs - 1) / packs, kPlainThreads);
  const int block = members > threads ? members : threads;
  return plan_rows(args, pack, members, block, launch.multiprocessors * (resident / block));
}

// A pack as it is in memory. 16-bit elements take a register each.
struct alignas(16) Words {
  uint32_t w[4];
};

// The elements of a pack, unpacked here: the compiler must not keep those of an earlier use.
template <class T>
__device__ Pack<T, kPack<T>> elements(Words words) {
#pragma unroll
  for (uint32_t& w : words.w) asm volatile("" : "+r"(w));
  return __builtin_bit_cast(Pack<T, kPack<T>>, words);
}

// The rows of the threads that share one. All threads take as many turns, for those of a block
// meet, though in the last one there may be no row for them.
struct PlainWalk {
  int members, lane, row_packs, turns, rows, row, step;
  __device__ explicit PlainWalk(const PlainPlan& p)
      : members(p.members),
        lane(int(threadIdx.x) % p.members),
        row_packs(p.row_packs),
        turns(p.turns),
        rows(p.rows),
        row(int(blockIdx.x) * (p.block / p.members) + int(threadIdx.x) / p.members),
        step(int(p.blocks) * (p.block / p.members)) {}
  __device__ bool more() const { return turns > 0; }
  __device__ void next() {
    --turns;
    row += step;
  }
  __device__ bool has_row(int ahead = 0) const { return row + ahead * step < rows; }
  // Of rows that are channels.
  __device__ int64_t channel(int64_t channels) const {
    return int64_t(unsigned(row) % unsigned(channels));
  }
  // Whether the row has the thread's pack i, which is this one of the row.
  __device__ bool has_pack(int i) const { return pack(i) < row_packs; }
  __device__ int pack(int i) const { return lane + i * members; }

  // The thread's packs of the row that is so many steps ahead; zeros where there is none.
  template <int kPacks>
  __device__ void load(const void* base, int ahead, Words (&packs)[kPacks]) const {
    const Words* from =
        static_cast<const Words*>(base) + int64_t(row + ahead * step) * row_packs + lane;
    const bool active = has_row(ahead);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      packs[i] = {};
      if (active && has_pack(i)) packs[i] = from[i * members];
    }
  }
  // Those of numbers that all rows share.
  template <int kPacks>
  __device__ void load_shared(const void* base, Words (&packs)[kPacks]) const {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      packs[i] = {};
      if (has_pack(i)) packs[i] = static_cast<const Words*>(base)[pack(i)];
    }
  }
  template <class T, int N>
  __device__ void store(void* base, int i, const Pack<T, N>& pack) const {
    if (!has_row() || !has_pack(i)) return;
    static_cast<Pack<T, N>*>(base)[int64_t(row) * row_packs + this->pack(i)] = pack;
  }
  // gamma or beta of the elements of the thread's pack i.
  template <class T, int N>
  __device__ void load_parameters(const RowParameter& parameter, Compute<T> otherwise, int i,
                                  Compute<T> (&v)[N]) const {
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = otherwise;
    if (parameter.data == nullptr || !has_pack(i)) return;
    int channel = pack(i) * N;
    asm volatile("" : "+r"(channel));  // kept addresses would cost more registers than the pack
    gpu::load_parameters<T>(parameter, channel, v);
  }
};

// Where a thread has gamma and beta: those of its elements in registers, in half as many registers
// where they are narrow, or read for every row again, which leaves the registers to more threads;
// or the row's.
enum class Held { kRegisters, kPacks, kMemory, kRow };

// gamma or beta.
template <Held kHeld, class T, int kPacks>
class PlainParameter {
 public:
  using C = Compute<T>;
  static constexpr int N = kPack<T>;
  __device__ PlainParameter(const RowParameter& parameter, C otherwise, const PlainWalk& walk)
      : parameter_(parameter), otherwise_(otherwise) {
    if constexpr (kHeld == Held::kRegisters) {
#pragma unroll
      for (int i = 0; i < kPacks; ++i) walk.load_parameters<T>(parameter, otherwise, i, v_[i]);
    }
    if constexpr (kHeld == Held::kPacks) walk.load_shared(parameter.data, packs_);
  }
  __device__ void start_row(const PlainWalk& walk, int64_t channels) {
    if constexpr (kHeld == Held::kRow)
      v_[0][0] = parameter_at<T>(parameter_, walk.channel(channels), otherwise_);
  }
  // Those of the elements of the thread's pack i.
  __device__ void get(const PlainWalk& walk, int i, C (&v)[N]) const {
    if constexpr (kHeld == Held::kMemory) {
      walk.load_parameters<T>(parameter_, otherwise_, i, v);
    } else if constexpr (kHeld == Held::kPacks) {
      const auto pack = elements<T>(packs_[i]);
#pragma unroll
      for (int k = 0; k < N; ++k) v[k] = widen(pack.v[k]);
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k) v[k] = kHeld == Held::kRow ? v_[0][0] : v_[i][k];
    }
  }

 private:
  RowParameter parameter_;
  C otherwise_;
  C v_[kHeld == Held::kRegisters ? kPacks : 1][N];
  Words packs_[kHeld == Held::kPacks ? kPacks : 1];
};

// Statistics of the row that is so many steps ahead. Without one they are zeros, which add nothing.
template <class C>
__device__ RowStatistics<C> load_statistics(const RowNormalizationArgs& args, const PlainWalk& walk,
                                            int ahead) {
  RowStatistics<C> s{};
  if (walk.has_row(ahead)) s.read(args, walk.row + ahead * walk.step);
  return s;
}

// Sums the first kCount numbers over `lanes` adjacent lanes, a power of two and at most 2 * kFirst.
template <int kCount, int kFirst, class C, int kNumbers>
__device__ void add_lanes(C (&v)[kNumbers], int lanes = 2 * kFirst) {
#pragma unroll
  for (int offset = kFirst; offset > 0; offset /= 2) {
    if (offset >= lanes) continue;
#pragma unroll
    for (int k = 0; k < kCount; ++k) v[k] += __shfl_xor_sync(kAllLanes, v[k], offset);
  }
}

// Sums over the threads of a row. All threads of the block call it.
template <class C>
struct RowTotals {
  static constexpr int kNumbers = 2;
  using Memory = C[2][kNumbers][kPlainWarps];
  Memory& shared;
  int members;
  // Calls use the two parts of the memory in turn: who writes to one has met, since it was read,
  // all of its readers.
  int turn = 0;
  __device__ RowTotals(Memory& shared, int members) : shared(shared), members(members) {}

  // All threads of a row get the same bits, since each adds the same pairs.
  template <int kCount>
  __device__ void sum(C (&v)[kNumbers]) {
    add_lanes<kCount, 16>(v, members);
    if (members <= 32) return;
    auto& numbers = shared[turn];
    turn ^= 1;
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, warps = members / 32;
    if (lane == 0)
#pragma unroll
      for (int k = 0; k < kCount; ++k) numbers[k][warp] = v[k];
    __syncthreads();
    const int from = (warp & ~(warps - 1)) + (lane & (warps - 1));
#pragma unroll
    for (int k = 0; k < kCount; ++k) v[k] = numbers[k][from];
    add_lanes<kCount, kPlainWarps / 2>(v, warps);
  }
};

// The statistics of a row that is in packs, of which totals.sum<n>() adds up those of all threads.
// The mean is made first, so that the squares are of numbers that are small; what is left of it
// then is its rest, which numbers of 16 bits are too coarse to need. kChains: 1, or kPacks for
// shorter chains of additions.
template <class T, int kChains, class C, int kPacks, class Totals>
__device__ RowStatistics<C> find_statistics(const Words (&packs)[kPacks], const PlainWalk& walk,
                                            Totals& totals, const RowNormalizationArgs& args,
                                            C size) {
  static_assert(kChains == 1 || kChains == kPacks);
  constexpr int N = kPack<T>;
  constexpr bool kHasRest = sizeof(T) >= sizeof(float);
  const C share = C(1) / size;
  C mean[2] = {};
  if (args.centred) {
    // Shares of it do not overflow.
    C shares[kChains] = {};
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const auto x = elements<T>(packs[i]);
      C& sum = shares[i % kChains];
#pragma unroll
      for (int k = 0; k < N; ++k) sum = fused(widen(x.v[k]), share, sum);
    }
    mean[0] = shares[0];
#pragma unroll
    for (int c = 1; c < kChains; ++c) mean[0] += shares[c];
    totals.template sum<1>(mean);
  }
  C squares[kChains] = {}, numbers[kChains] = {};
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (!walk.has_pack(i)) continue;
    const auto x = elements<T>(packs[i]);
    const int c = i % kChains;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C v = widen(x.v[k]) - mean[0];
      squares[c] = fused(v, v, squares[c]);
      if constexpr (kHasRest) numbers[c] += v;
    }
  }
  C sums[2] = {squares[0], numbers[0]};
#pragma unroll
  for (int c = 1; c < kChains; ++c) {
    sums[0] += squares[c];
    sums[1] += numbers[c];
  }
  if (kHasRest && args.centred)
    totals.template sum<2>(sums);
  else
    totals.template sum<1>(sums);
  const C rest = kHasRest && args.centred ? sums[1] / size : C(0);
  C variance = fused(-rest, rest, sums[0] / size);
  if (variance < C(0)) variance = C(0);
  return {C(1) / root(variance + C(args.eps)), mean[0], rest};
}

}  // namespace
}  // namespace catena::gpu
