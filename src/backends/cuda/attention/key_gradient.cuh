// Gradients of keys and values. A block has a tile of both, and passes over the queries of all
// heads of their group that attend to them.
#pragma once

#include "backends/cuda/attention/gradient.cuh"
#include "backends/cuda/attention/instances.cuh"

namespace catena::gpu {
namespace {

// The tiles of queries of a group's heads that attend to any of the keys [first, end).
template <int kQueries>
class QueryTiles {
 public:
  __device__ QueryTiles(const RangeReader& ranges, const AttentionArgs& args, int group, int first,
                        int end)
      : ranges_(ranges),
        tiles_((args.queries + kQueries - 1) / kQueries),
        heads_(args.heads / args.groups),
        head_(group * heads_),
        last_head_(head_ + heads_),
        first_(first),
        end_(end) {
    // Which tiles there are does not depend on the head: the lanes of a warp look at them once.
    from_ = tiles_;
    for (int i = threadIdx.x % 32; i < tiles_; i += 32) {
      if (!attends(ranges_.template of_tile<kQueries>(i))) continue;
      from_ = min(from_, i);
      to_ = i + 1;
    }
    from_ = __reduce_min_sync(0xffffffff, from_);
    to_ = __reduce_max_sync(0xffffffff, to_);
    tile_ = from_;
    find();
  }
  __device__ bool is_done() const { return head_ == last_head_; }
  __device__ int head() const { return head_; }
  __device__ int query() const { return tile_ * kQueries; }
  // Whether all of its queries attend to all of the keys.
  __device__ bool is_clean() const { return first_ >= bounds_.z && end_ <= bounds_.w; }
  __device__ void advance() {
    ++tile_;
    find();
  }

 private:
  __device__ bool attends(const int4& bounds) const { return bounds.x < end_ && bounds.y > first_; }
  __device__ void find() {
    for (; head_ < last_head_; ++head_, tile_ = from_) {
      for (; tile_ < to_; ++tile_) {
        bounds_ = ranges_.template of_tile<kQueries>(tile_);
        if (attends(bounds_)) return;
      }
    }
  }

  const RangeReader& ranges_;
  int tiles_, heads_, head_, last_head_, first_, end_, from_, to_ = 0, tile_;
  int4 bounds_{};
};

// 0 where a query, of which there is a column, does not attend to the key.
template <int kRows, int kTiles>
__device__ void clear_outside(float (&numbers)[kRows][kTiles][4], const int2* ranges, int own) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int2 range = ranges[8 * j + 2 * t + i];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int key = own + r * 16 + h * 8 + g;
          if (key < range.x || key >= range.y) numbers[r][j][2 * h + i] = 0;
        }
      }
    }
  }
}

// kKey, kValue: which of both gradients the kernel makes.
template <class T, int kColumns, bool kPlain, bool kKey, bool kValue>
__global__ void __launch_bounds__(kAttentionThreads)
    attention_key_grad_kernel(AttentionGradArgs args) {
  wait_for_previous_kernel();
  using P = Products<T>;
  using Tile = KeyGradTile<T, kColumns>;
  constexpr int kRows = Tile::kRows, kKeys = Tile::kKeys, kQueries = Tile::kQueries;
  constexpr int kStride = kTileStride<T, kColumns>, kOutTiles = kColumns / 8;
  static_assert(kQueries <= kAttentionThreads && kQueries % 16 == 0);
  const AttentionArgs& forward = args.forward;
  T* const k = reinterpret_cast<T*>(dynamic_shared());
  T* const v = k + kKeys * kStride;
  unsigned char* const stages = reinterpret_cast<unsigned char*>(v + kKeys * kStride);
  const auto q_of = [&](int stage) { return reinterpret_cast<T*>(stages + stage * Tile::kStage); };
  const auto gout_of = [&](int stage) { return q_of(stage) + kQueries * kStride; };
  RowNorms* const all_norms = reinterpret_cast<RowNorms*>(stages + 2 * Tile::kStage);
  int2* const all_ranges = reinterpret_cast<int2*>(all_norms + 2 * kQueries);

  const int tiles = (forward.keys + kKeys - 1) / kKeys;
  // With a causal rule the first keys have most queries.
  const int tile = blockIdx.x % tiles;
  const int group = blockIdx.x / tiles % forward.groups,
            batch = blockIdx.x / tiles / forward.groups;
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int first = tile * kKeys, own = first + warp * 16 * kRows;
  const RangeReader ranges(forward, batch);
  const int readable = ranges.keys(batch);

  // A tile of queries on its way to a stage of shared memory.
  const auto load = [&](const QueryTiles<kQueries>& at, int stage) {
    const int query = at.query(), there = forward.queries - query;
    load_tile<T, kColumns, kQueries>(
        q_of(stage), rows_of<T>(forward.q, batch, at.head()) + query * forward.q.row, forward.q.row,
        there, forward.depth);
    load_tile<T, kColumns, kQueries>(
        gout_of(stage), rows_of<T>(args.gout, batch, at.head()) + query * args.gout.row,
        args.gout.row, there, forward.width);
    end_group_of_copies();
    if (threadIdx.x < kQueries) {
      all_norms[stage * kQueries + threadIdx.x] =
          norms_of<kPlain>(args, batch, at.head(), query + threadIdx.x);
      all_ranges[stage * kQueries + threadIdx.x] = ranges.of(query + threadIdx.x);
    }
  };

  const float exponent = forward.scale * kLog2E;
  float gk[kKey ? kRows : 1][kKey ? kOutTiles : 2][4] = {};
  float gv[kValue ? kRows : 1][kValue ? kOutTiles : 2][4] = {};
  load_tile<T, kColumns, kKeys>(k, rows_of<T>(forward.k, batch, group) + first * forward.k.row,
                                forward.k.row, readable - first, forward.depth);
  if constexpr (kKey)
    load_tile<T, kColumns, kKeys>(v, rows_of<T>(forward.v, batch, group) + first * forward.v.row,
                                  forward.v.row, readable - first, forward.width);
  QueryTiles<kQueries> next(ranges, forward, group, first, min(first + kKeys, forward.keys));
  if (!next.is_done()) load(next, 0);
  for (int stage = 0; !next.is_done(); stage ^= 1) {
    const QueryTiles<kQueries> here = next;
    wait_for_copies();
    __syncthreads();  // this stage is there, and nobody reads the other one any more
    next.advance();
    if (!next.is_done()) load(next, stage ^ 1);

    const T *const q = q_of(stage), *const gout = gout_of(stage);
    float weights[kRows][kQueries / 8][4] = {}, gweights[kRows][kQueries / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kColumns; step += P::kStep) {
      typename P::A a[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        a[r] = P::load(k + (warp * kRows + r) * 16 * kStride + step, kStride);
      P::add_rows(weights, a, q + step, kStride, forward.precise);
    }
    if constexpr (kKey) {
#pragma unroll
      for (int step = 0; step < kColumns; step += P::kStep) {
        typename P::A a[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          a[r] = P::load(v + (warp * kRows + r) * 16 * kStride + step, kStride);
        P::add_rows(gweights, a, gout + step, kStride, forward.precise);
      }
    }
    const ScoreRules<T> rules(forward, batch, here.head());
    const RowNorms* const norms = all_norms + stage * kQueries;
    const int2* const own_ranges = all_ranges + stage * kQueries;
#pragma unroll
    for (int j = 0; j < kQueries / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = 8 * j + 2 * t + i, query = here.query() + at;
        const RowNorms of_row = norms[at];
        const int2 range = kPlain ? int2{} : own_ranges[at];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int key = own + r * 16 + h * 8 + g;
            float &w = weights[r][j][2 * h + i], &gw = gweights[r][j][2 * h + i];
            WeightAndGradient both{0, 0};
            if constexpr (kPlain)
              both = differentiate_plain(forward.scale, exponent, of_row, w, gw);
            else if (key >= range.x && key < range.y)
              both = differentiate(forward, rules, of_row, w, gw, query, key);
            w = both.weight;
            gw = both.gradient;
          }
        }
      }
    }
    if (kPlain && !here.is_clean()) {
      clear_outside(weights, own_ranges, own);
      clear_outside(gweights, own_ranges, own);
    }
#pragma unroll
    for (int step = 0; step < kQueries / P::kStep; ++step) {
      typename P::A a[kRows];
      if constexpr (kValue) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) a[r] = P::of(weights[r], step);
        P::add(gv, a, gout + step * P::kStep * kStride, kStride, forward.precise);
      }
      if constexpr (kKey) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) a[r] = P::of(gweights[r], step);
        P::add(gk, a, q + step * P::kStep * kStride, kStride, forward.precise);
      }
    }
  }
  wait_for_copies();
  __syncthreads();

  // Results of the warp go to where its keys and values were.
  const auto give = [&](const auto& sums, T* shared, const Heads& heads, int columns) {
    T* const results = shared + warp * 16 * kRows * kStride;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int j = 0; j < kOutTiles; ++j)
          *reinterpret_cast<Pack<T, 2>*>(results + (r * 16 + h * 8 + g) * kStride + 8 * j +
                                         2 * t) = {
              {Narrow<T>::from(sums[r][j][2 * h]), Narrow<T>::from(sums[r][j][2 * h + 1])}};
      }
    }
    store_tile<T, kColumns, 16 * kRows>(results, rows_of<T>(heads, batch, group) + own * heads.row,
                                        heads.row, forward.keys - own, columns);
  };
  if constexpr (kKey) give(gk, k, args.gk, forward.depth);
  if constexpr (kValue) give(gv, v, args.gv, forward.width);
}

}  // namespace

template <class T, int kColumns>
void run_attention_key_grad(const AttentionGradArgs& args, const Launch& launch) {
  using Tile = KeyGradTile<T, kColumns>;
  const AttentionArgs& forward = args.forward;
  const unsigned blocks =
      attention_blocks(forward.keys, Tile::kKeys, int64_t(forward.groups) * forward.batch);
  choose_plain<T, kColumns>(forward, [&](auto plain) {
    constexpr bool kPlain = decltype(plain)::value;
    if constexpr (Tile::kIsSplit) {
      launch_with_shared<attention_key_grad_kernel<T, kColumns, kPlain, true, false>>(
          blocks, kAttentionThreads, Tile::kShared, launch, args);
      launch_with_shared<attention_key_grad_kernel<T, kColumns, kPlain, false, true>>(
          blocks, kAttentionThreads, Tile::kShared, launch, args);
    } else {
      launch_with_shared<attention_key_grad_kernel<T, kColumns, kPlain, true, true>>(
          blocks, kAttentionThreads, Tile::kShared, launch, args);
    }
  });
}

}  // namespace catena::gpu
