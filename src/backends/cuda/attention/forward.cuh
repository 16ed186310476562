// Forward attention: a block takes a tile of queries of one head, in shared memory, and passes over
// the keys (Dao et al. 2022; Dao 2023). Scores stay in registers: the accumulator of one product is
// the left operand of the next. Each warp has its own queries and meets others only where tiles of
// keys are replaced.
#pragma once

#include "backends/cuda/attention/instances.cuh"
#include "backends/cuda/attention/scores.cuh"
#include "backends/cuda/common/dynamic_shared.cuh"

namespace catena::gpu {
namespace {

// Running maximum and sum of rows g and g + 8 of each tile of 16 queries.
template <int kRows>
struct RowSums {
  float largest[kRows][2], sum[kRows][2];
};

// Products become scores, -inf where a query does not attend to the key.
template <class T, int kRows, int kTiles>
__device__ void apply_rules(float (&scores)[kRows][kTiles][4], const AttentionArgs& args,
                            const RangeReader& ranges, const ScoreRules<T>& rules, int own,
                            int key) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int query = own + r * 16 + h * 8 + g;
      const int2 range = ranges.of(query);
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& s = scores[r][j][2 * h + i];
          float slope;
          const int at = key + 8 * j + 2 * t + i;
          s = at >= range.x && at < range.y ? rules.score(s * args.scale, query, at, &slope)
                                            : -kInfinity;
        }
      }
    }
  }
}

template <class T, int kRows, int kTiles>
__device__ void drop(float (&weights)[kRows][kTiles][4], const ScoreRules<T>& rules, int own,
                     int key) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& w = weights[r][j][i];
        if (w > 0) w *= rules.factor(own + r * 16 + i / 2 * 8 + g, key + 8 * j + 2 * t + i % 2);
      }
    }
  }
}

// kPlain: neither mask, bias, softcap nor dropout, and a positive scale.
template <class T, int kColumns, bool kPlain>
__global__ void __launch_bounds__(kAttentionThreads) attention_kernel(AttentionArgs args) {
  wait_for_previous_kernel();
  using P = Products<T>;
  using Tile = ForwardTile<T, kColumns>;
  constexpr int kRows = Tile::kRows, kKeys = Tile::kKeys, kQueries = Tile::kQueries;
  constexpr int kStride = kTileStride<T, kColumns>, kOutTiles = kColumns / 8;
  T* const q = reinterpret_cast<T*>(dynamic_shared());
  T* const k = q + kQueries * kStride;
  T* const v = k + kKeys * kStride;

  // Of a head the last queries come first: with a causal rule they have most keys.
  const int tiles = (args.queries + kQueries - 1) / kQueries;
  const int tile = tiles - 1 - int(blockIdx.x % tiles);
  const int head = blockIdx.x / tiles % args.heads, batch = blockIdx.x / tiles / args.heads;
  const int group = head / (args.heads / args.groups);
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int first = tile * kQueries, own = first + warp * 16 * kRows;

  const RangeReader ranges(args, batch);
  const int4 bounds = ranges.template of_tile<kQueries>(tile);
  const int readable = ranges.keys(batch);
  const ScoreRules<T> rules(args, batch, head);
  const T* const all_k = rows_of<T>(args.k, batch, group);
  const T* const all_v = rows_of<T>(args.v, batch, group);
  const auto load_k = [&](int key) {
    load_tile<T, kColumns, kKeys>(k, all_k + key * args.k.row, args.k.row, readable - key,
                                  args.depth);
    end_group_of_copies();
  };
  const auto load_v = [&](int key) {
    load_tile<T, kColumns, kKeys>(v, all_v + key * args.v.row, args.v.row, readable - key,
                                  args.width);
    end_group_of_copies();
  };

  RowSums<kRows> sums;
  float out[kRows][kOutTiles][4] = {};
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      sums.largest[r][h] = -kInfinity;
      sums.sum[r][h] = 0;
    }
  }
  // Scores of a plain call are scaled where they are exponentiated.
  const float exponent = kPlain ? args.scale * kLog2E : kLog2E;

  load_tile<T, kColumns, kQueries>(q, rows_of<T>(args.q, batch, head) + first * args.q.row,
                                   args.q.row, args.queries - first, args.depth);
  if (bounds.x < bounds.y) load_k(bounds.x);
  for (int key = bounds.x; key < bounds.y; key += kKeys) {
    wait_for_copies();
    __syncthreads();  // k is there, and nobody reads v any more
    load_v(key);
    float scores[kRows][kKeys / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kColumns; step += P::kStep) {
      typename P::A a[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        a[r] = P::load(q + (warp * kRows + r) * 16 * kStride + step, kStride);
      P::add_rows(scores, a, k + step, kStride, args.precise);
    }
    wait_for_copies();
    __syncthreads();  // v is there, and nobody reads k any more
    if (key + kKeys < bounds.y) load_k(key + kKeys);

    if constexpr (!kPlain)
      apply_rules(scores, args, ranges, rules, own, key);
    else if (key < bounds.z || key + kKeys > bounds.w)
      fill_outside(scores, -kInfinity, ranges, own, key);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float largest = sums.largest[r][h];
#pragma unroll
        for (int j = 0; j < kKeys / 8; ++j)
          largest = fmaxf(largest, fmaxf(scores[r][j][2 * h], scores[r][j][2 * h + 1]));
        largest = largest_of_row(largest);
        const float shift = largest == -kInfinity ? 0 : largest;
        const float before = exp2_of((sums.largest[r][h] - shift) * exponent);
        sums.largest[r][h] = largest;
        float sum = 0;
#pragma unroll
        for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            float& s = scores[r][j][2 * h + i];
            s = exp2_of((s - shift) * exponent);
            sum += s;
          }
        }
        sums.sum[r][h] = sums.sum[r][h] * before + sum;
#pragma unroll
        for (int j = 0; j < kOutTiles; ++j) {
          out[r][j][2 * h] *= before;
          out[r][j][2 * h + 1] *= before;
        }
      }
    }
    if constexpr (!kPlain) {
      if (args.dropout > 0) drop(scores, rules, own, key);
    }
#pragma unroll
    for (int step = 0; step < kKeys / P::kStep; ++step) {
      typename P::A a[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) a[r] = P::of(scores[r], step);
      P::add(out, a, v + step * P::kStep * kStride, kStride, args.precise);
    }
  }
  wait_for_copies();
  __syncthreads();  // q may have been loaded for nothing

  // Results of the warp go to where its queries were.
  T* const results = q + warp * 16 * kRows * kStride;
  const int64_t rows = int64_t(args.batch) * args.heads * args.queries;
  float* const norms = args.norms + (int64_t(batch) * args.heads + head) * args.queries;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = r * 16 + h * 8 + g;
      const float sum = sum_of_row(sums.sum[r][h]);
      // A score that is not a number is no largest one, but shows in the sum.
      const float largest = isnan(sum) ? sum : sums.largest[r][h];
      const bool is_empty = largest == -kInfinity;
      if (t == 0 && own + row < args.queries) {
        norms[own + row] = kPlain && !is_empty ? largest * args.scale : largest;
        norms[rows + own + row] = is_empty ? 0 : logf(sum);
      }
      const float factor = is_empty ? 0 : 1 / sum;
#pragma unroll
      for (int j = 0; j < kOutTiles; ++j)
        *reinterpret_cast<Pack<T, 2>*>(results + row * kStride + 8 * j +
                                       2 * t) = {{Narrow<T>::from(out[r][j][2 * h] * factor),
                                                  Narrow<T>::from(out[r][j][2 * h + 1] * factor)}};
    }
  }
  store_tile<T, kColumns, 16 * kRows>(results,
                                      rows_of<T>(args.out, batch, head) + own * args.out.row,
                                      args.out.row, args.queries - own, args.width);
}

}  // namespace

template <class T, int kColumns>
void run_attention(const AttentionArgs& args, const Launch& launch) {
  using Tile = ForwardTile<T, kColumns>;
  const unsigned blocks =
      attention_blocks(args.queries, Tile::kQueries, int64_t(args.heads) * args.batch);
  choose_plain<T, kColumns>(args, [&](auto plain) {
    launch_with_shared<attention_kernel<T, kColumns, decltype(plain)::value>>(
        blocks, kAttentionThreads, Tile::kShared, launch, args);
  });
}

}  // namespace catena::gpu
