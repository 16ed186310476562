// Normalization of plain rows: the gradients of x, gamma and beta. Those of gamma and beta are
// summed in registers over the rows of a thread, then over the block; a second kernel sums over the
// blocks. The order is fixed, so that equal launches give equal bits.
#include "backends/cuda/common/named_barrier.cuh"
#include "backends/cuda/common/pairs.cuh"
#include "backends/cuda/normalization/plain_gradient.cuh"

namespace catena::gpu {
namespace {

// Numbers of all threads, in a line for each of their elements. The lines are so long that threads
// that read adjacent elements of a row meet different banks.
template <class C, int N, int kElements>
struct ElementLines {
  static constexpr int kLine = kPlainThreads + 32 / N;
  C of[kElements * kLine];
};

// Sums over the groups of threads of the block, into to[channels].
template <int N, class C, int kElements>
__device__ void store_block_sums(C (&sums)[kElements], const PlainPlan& plan, C* to,
                                 ElementLines<C, N, kElements>& lines) {
  constexpr int kLine = ElementLines<C, N, kElements>::kLine;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    if (offset < plan.members) continue;
#pragma unroll
    for (int e = 0; e < kElements; ++e) sums[e] += __shfl_xor_sync(kAllLanes, sums[e], offset);
  }
  __syncthreads();  // the lines may have been read before
#pragma unroll
  for (int e = 0; e < kElements; ++e) lines.of[e * kLine + int(threadIdx.x)] = sums[e];
  __syncthreads();
  const int step = plan.members < 32 ? 32 : plan.members;
  for (int c = int(threadIdx.x); c < plan.row_packs * N; c += plan.block) {
    const int pack = c / N, e = pack / plan.members * N + c % N;
    const C* from = lines.of + e * kLine + pack % plan.members;
    C sum = C(0);
    for (int t = 0; t < plan.block; t += step) sum += from[t];
    to[c] = sum;
  }
}

template <class T, int kPacks, bool kAdd>
__global__ void __launch_bounds__(kPlainThreads, 1)
    plain_gradient_kernel(RowNormalizationArgs args, RowParameterSums parameters, PlainPlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  constexpr int N = kPack<T>, kElements = kPacks * N;
  // More packs have no room for the next row.
  constexpr bool kAhead = kPacks <= 2;
  __shared__ typename RowTotals<C>::Memory shared;
  __shared__ ElementLines<C, N, kElements> lines;
  RowTotals<C> totals(shared, plan.members);
  PlainWalk walk(plan);
  C gamma[kElements], of_gamma[kElements] = {}, of_beta[kElements] = {};
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    C of_pack[N];
    walk.load_parameters<T>(args.gamma, C(1), i, of_pack);
#pragma unroll
    for (int k = 0; k < N; ++k) gamma[i * N + k] = of_pack[k];
  }
  GradientRow<T, kPacks, kAdd> next;
  next.load(args, walk, 0);
  for (; walk.more(); walk.next()) {
    GradientRow<T, kPacks, kAdd> row = next;
    row.load_sum(args, walk, 0);
    if (kAhead) next.load(args, walk, 1);
    const C shift = -row.s.rest * row.s.inverse;
    RowSums<C> sums{};  // zeros of packs that are not there add nothing
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const auto px = elements<T>(row.x[i]), pgy = elements<T>(row.gy[i]);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const int e = i * N + k;
        const C g = widen(pgy.v[k]), h = gamma[e] * g, centred = widen(px.v[k]) - row.s.mean;
        sums.v[0] += h;
        sums.v[1] = fused(h, centred, sums.v[1]);
        of_beta[e] += g;
        of_gamma[e] = fused(g, fused(centred, row.s.inverse, shift), of_gamma[e]);
      }
    }
    if (args.y != nullptr) {
      totals.template sum<2>(sums.v);
      const RowGradient<C> gradient(row.s, sums, C(args.channels), args.centred);
      row.store(args, walk, gradient, [&](int e) { return gamma[e]; });
    }
    if (!kAhead) next.load(args, walk, 1);
  }
  C* const partials = static_cast<C*>(parameters.partials) + blockIdx.x * args.channels;
  if (parameters.gamma.data != nullptr) store_block_sums(of_gamma, plan, partials, lines);
  if (parameters.beta.data != nullptr)
    store_block_sums(of_beta, plan, partials + plan.blocks * args.channels, lines);
}

constexpr int kWarp = 32, kBlocksOfWarpRows = 2;  // of a multiprocessor
constexpr int kWarpRowThreads = kPlainThreads < 384 ? kPlainThreads : 384;
constexpr int kMostWarpsOfRow = 8;

// Sums over the threads of a row of whole warps, which do not wait for those of other rows.
template <class C>
struct WarpRowTotals {
  using Memory = C[2][2][kWarpRowThreads / kWarp];
  Memory& shared;
  int members, row, warp;
  int other;     // the warp whose sums the thread reads
  bool reads;    // whether the row has it
  int turn = 0;  // as in RowTotals
  __device__ WarpRowTotals(Memory& shared, int members)
      : shared(shared),
        members(members),
        row(int(threadIdx.x) / members),
        warp(int(threadIdx.x) / kWarp) {
    const int warps = members / kWarp, place = int(threadIdx.x) % kMostWarpsOfRow;
    other = row * warps + place;
    reads = place < warps;
  }

  __device__ void sum(C (&v)[2]) {
    add_lanes<2, kWarp / 2>(v);
    if (members == kWarp) return;
    auto& numbers = shared[turn];
    turn ^= 1;
    if (threadIdx.x % kWarp == 0)
#pragma unroll
      for (int k = 0; k < 2; ++k) numbers[k][warp] = v[k];
    meet(1 + row, members);
#pragma unroll
    for (int k = 0; k < 2; ++k) v[k] = reads ? numbers[k][other] : C(0);
    add_lanes<2, kMostWarpsOfRow / 2>(v);
  }
};

// Rows of 16-bit elements that fill whole warps, a pack for each thread: no thread is idle, and so
// few registers are needed that two blocks fit, with the next row of each thread on its way.
template <class T, Held kHeld, bool kAdd>
__global__ void __launch_bounds__(kWarpRowThreads, kBlocksOfWarpRows)
    warp_gradient_kernel(RowNormalizationArgs args, RowParameterSums parameters, PlainPlan plan) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  constexpr int N = kPack<T>;
  __shared__ typename WarpRowTotals<C>::Memory shared;
  __shared__ ElementLines<C, N, N> lines;
  WarpRowTotals<C> totals(shared, plan.members);
  PlainWalk walk(plan);
  const PlainParameter<kHeld, T, 1> gamma(args.gamma, C(1), walk);
  const C share = C(1) / C(args.channels);
  C of_gamma[N] = {}, of_beta[N] = {};
  GradientRow<T, 1, kAdd> next;
  next.load(args, walk, 0);
  next.load_sum(args, walk, 0);
  for (; walk.more(); walk.next()) {
    const GradientRow<T, 1, kAdd> row = next;
    next.load(args, walk, 1);
    next.load_sum(args, walk, 1);
    const C shift = -row.s.rest * row.s.inverse;
    RowSums<C> sums{};  // of h and of h * xhat
    C scale[N], h[N], xhat[N];
    gamma.get(walk, 0, scale);
    const auto px = elements<T>(row.x[0]), pgy = elements<T>(row.gy[0]);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const C g = widen(pgy.v[k]);
      h[k] = scale[k] * g;
      xhat[k] = fused(widen(px.v[k]) - row.s.mean, row.s.inverse, shift);
      sums.v[0] += h[k];
      sums.v[1] = fused(h[k], xhat[k], sums.v[1]);
      of_beta[k] += g;
      of_gamma[k] = fused(g, xhat[k], of_gamma[k]);
    }
    if (args.y == nullptr) continue;
    totals.sum(sums.v);
    const C of_xhat = -sums.v[1] * share, constant = args.centred ? -sums.v[0] * share : C(0);
    C results[N];
#pragma unroll
    for (int k = 0; k < N; ++k)
      results[k] = row.s.inverse * (h[k] + fused(of_xhat, xhat[k], constant));
    if constexpr (kAdd) {
      const auto more = elements<T>(row.gsum[0]);
#pragma unroll
      for (int k = 0; k < N; ++k) results[k] += widen(more.v[k]);
    }
    walk.store(args.y, 0, narrow<T, N>(results));
  }
  C* const partials = static_cast<C*>(parameters.partials) + blockIdx.x * args.channels;
  if (parameters.gamma.data != nullptr) store_block_sums(of_gamma, plan, partials, lines);
  if (parameters.beta.data != nullptr)
    store_block_sums(of_beta, plan, partials + plan.blocks * args.channels, lines);
}

// Blocks have two rows at least.
bool has_warp_rows(Float type, const RowNormalizationArgs& args) {
  constexpr int64_t kPackSize = kPack<__half>, kMostMembers = kWarpRowThreads / 2;
  static_assert(kMostMembers <= kMostWarpsOfRow * kWarp);
  return type != Float::kF32 && args.channels % (kWarp * kPackSize) == 0 &&
         args.channels <= kMostMembers * kPackSize;
}

template <class T>
void run_warps(const RowNormalizationArgs& args, const RowParameterSums& parameters,
               const Launch& launch) {
  const int members = int(args.channels) / kPack<T>;
  const PlainPlan plan = plan_rows(args, kPack<T>, members, kWarpRowThreads / members * members,
                                   launch.multiprocessors * kBlocksOfWarpRows);
  const unsigned blocks = plan.blocks, block = unsigned(plan.block);
  // gsum takes the registers of gamma.
  if (!args.has_sum())
    launch_kernel<warp_gradient_kernel<T, Held::kRegisters, false>>(blocks, block, launch, args,
                                                                    parameters, plan);
  else if (args.gamma.narrow)
    launch_kernel<warp_gradient_kernel<T, Held::kPacks, true>>(blocks, block, launch, args,
                                                               parameters, plan);
  else
    launch_kernel<warp_gradient_kernel<T, Held::kMemory, true>>(blocks, block, launch, args,
                                                                parameters, plan);
  sum_partials<T>(parameters, args.channels, blocks, launch);
}

// Packs that a thread takes of such a row; 0: of a row that is too long.
int packs_of_thread(Float type, const RowNormalizationArgs& args) {
  const int64_t packs = args.channels / (type == Float::kF32 ? kPack<float> : kPack<__half>);
  if (packs <= 2 * kPlainThreads) return 2;
  // Sums of more elements than 16 would leave the registers.
  return type == Float::kF32 && packs <= 4 * kPlainThreads ? 4 : 0;
}

template <class T, int kPacks>
void run(const RowNormalizationArgs& args, const RowParameterSums& parameters,
         const Launch& launch) {
  const PlainPlan plan =
      plan_plain_rows(args, kPack<T>, kPacks, kPlainThreads, kPlainThreads, launch);
  if (args.has_sum())
    launch_kernel<plain_gradient_kernel<T, kPacks, true>>(plan.blocks, plan.block, launch, args,
                                                          parameters, plan);
  else
    launch_kernel<plain_gradient_kernel<T, kPacks, false>>(plan.blocks, plan.block, launch, args,
                                                           parameters, plan);
  sum_partials<T>(parameters, args.channels, plan.blocks, launch);
}

}  // namespace

bool has_plain_gradient(Float type, const RowNormalizationArgs& args) {
  return has_plain_rows(type, args) && (has_channel_rows(args) || packs_of_thread(type, args) > 0);
}

int64_t plain_gradient_partials(const RowNormalizationArgs& args, const Launch& launch) {
  const int64_t lines =
      has_channel_rows(args) ? args.samples : launch.multiprocessors * kBlocksOfWarpRows;
  return 2 * lines * args.channels;
}

void launch_plain_gradient(Float type, const RowNormalizationArgs& args,
                           const RowParameterSums& parameters, const Launch& launch) {
  if (has_channel_rows(args)) return launch_channel_gradient(type, args, parameters, launch);
  const bool warps = has_warp_rows(type, args);
  switch (type) {
    case Float::kF16:
      return warps ? run_warps<__half>(args, parameters, launch)
                   : run<__half, 2>(args, parameters, launch);
    case Float::kBf16:
      return warps ? run_warps<__nv_bfloat16>(args, parameters, launch)
                   : run<__nv_bfloat16, 2>(args, parameters, launch);
    default:
      return packs_of_thread(type, args) == 2 ? run<float, 2>(args, parameters, launch)
                                              : run<float, 4>(args, parameters, launch);
  }
}

}  // namespace catena::gpu
