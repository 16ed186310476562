// Gradient of queries. A block has a tile of them, and passes over their keys.
#pragma once

#include "backends/cuda/attention/gradient.cuh"
#include "backends/cuda/attention/instances.cuh"

namespace catena::gpu {
namespace {

template <class T, int kColumns, bool kPlain>
__global__ void __launch_bounds__(kAttentionThreads)
    attention_query_grad_kernel(AttentionGradArgs args) {
  wait_for_previous_kernel();
  using P = Products<T>;
  using Tile = QueryGradTile<T, kColumns>;
  constexpr int kRows = Tile::kRows, kKeys = Tile::kKeys, kQueries = Tile::kQueries;
  constexpr int kStride = kTileStride<T, kColumns>, kOutTiles = kColumns / 8;
  const AttentionArgs& forward = args.forward;
  T* const q = reinterpret_cast<T*>(dynamic_shared());
  T* const gout = q + kQueries * kStride;
  T* const k = gout + kQueries * kStride;
  T* const v = k + kKeys * kStride;

  const int tiles = (forward.queries + kQueries - 1) / kQueries;
  const int tile = tiles - 1 - int(blockIdx.x % tiles);
  const int head = blockIdx.x / tiles % forward.heads, batch = blockIdx.x / tiles / forward.heads;
  const int group = head / (forward.heads / forward.groups);
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int first = tile * kQueries, own = first + warp * 16 * kRows;

  const RangeReader ranges(forward, batch);
  const int4 bounds = ranges.template of_tile<kQueries>(tile);
  const int readable = ranges.keys(batch);
  const ScoreRules<T> rules(forward, batch, head);
  const T* const all_k = rows_of<T>(forward.k, batch, group);
  const T* const all_v = rows_of<T>(forward.v, batch, group);

  RowNorms norms[kRows][2];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
      norms[r][h] = norms_of<kPlain>(args, batch, head, own + r * 16 + h * 8 + g);
  }
  const float exponent = forward.scale * kLog2E;
  float out[kRows][kOutTiles][4] = {};
  load_tile<T, kColumns, kQueries>(q, rows_of<T>(forward.q, batch, head) + first * forward.q.row,
                                   forward.q.row, forward.queries - first, forward.depth);
  load_tile<T, kColumns, kQueries>(gout, rows_of<T>(args.gout, batch, head) + first * args.gout.row,
                                   args.gout.row, forward.queries - first, forward.width);
  const auto load_v = [&](int key) {
    load_tile<T, kColumns, kKeys>(v, all_v + key * forward.v.row, forward.v.row, readable - key,
                                  forward.width);
    end_group_of_copies();
  };
  if (bounds.x < bounds.y) load_v(bounds.x);
  for (int key = bounds.x; key < bounds.y; key += kKeys) {
    wait_for_copies();
    __syncthreads();  // v is there, and nobody reads k any more
    load_tile<T, kColumns, kKeys>(k, all_k + key * forward.k.row, forward.k.row, readable - key,
                                  forward.depth);
    end_group_of_copies();
    float gweights[kRows][kKeys / 8][4] = {}, scores[kRows][kKeys / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kColumns; step += P::kStep) {
      typename P::A a[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        a[r] = P::load(gout + (warp * kRows + r) * 16 * kStride + step, kStride);
      P::add_rows(gweights, a, v + step, kStride, forward.precise);
    }
    wait_for_copies();
    __syncthreads();  // k is there, and nobody reads v any more
    if (key + kKeys < bounds.y) load_v(key + kKeys);
#pragma unroll
    for (int step = 0; step < kColumns; step += P::kStep) {
      typename P::A a[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        a[r] = P::load(q + (warp * kRows + r) * 16 * kStride + step, kStride);
      P::add_rows(scores, a, k + step, kStride, forward.precise);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int query = own + r * 16 + h * 8 + g;
        const int2 range = kPlain ? int2{} : ranges.of(query);
#pragma unroll
        for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            float& s = scores[r][j][2 * h + i];
            const float gweight = gweights[r][j][2 * h + i];
            const int at = key + 8 * j + 2 * t + i;
            if constexpr (kPlain)
              s = differentiate_plain(forward.scale, exponent, norms[r][h], s, gweight).gradient;
            else
              s = at >= range.x && at < range.y
                      ? differentiate(forward, rules, norms[r][h], s, gweight, query, at).gradient
                      : 0;
          }
        }
      }
    }
    if (kPlain && (key < bounds.z || key + kKeys > bounds.w))
      fill_outside(scores, 0, ranges, own, key);
#pragma unroll
    for (int step = 0; step < kKeys / P::kStep; ++step) {
      typename P::A a[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) a[r] = P::of(scores[r], step);
      P::add(out, a, k + step * P::kStep * kStride, kStride, forward.precise);
    }
  }
  wait_for_copies();
  __syncthreads();

  T* const results = q + warp * 16 * kRows * kStride;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int j = 0; j < kOutTiles; ++j)
        *reinterpret_cast<Pack<T, 2>*>(results + (r * 16 + h * 8 + g) * kStride + 8 * j + 2 * t) = {
            {Narrow<T>::from(out[r][j][2 * h]), Narrow<T>::from(out[r][j][2 * h + 1])}};
    }
  }
  store_tile<T, kColumns, 16 * kRows>(results, rows_of<T>(args.gq, batch, head) + own * args.gq.row,
                                      args.gq.row, forward.queries - own, forward.depth);
}

}  // namespace

template <class T, int kColumns>
void run_attention_query_grad(const AttentionGradArgs& args, const Launch& launch) {
  using Tile = QueryGradTile<T, kColumns>;
  const AttentionArgs& forward = args.forward;
  const unsigned blocks =
      attention_blocks(forward.queries, Tile::kQueries, int64_t(forward.heads) * forward.batch);
  choose_plain<T, kColumns>(forward, [&](auto plain) {
    launch_with_shared<attention_query_grad_kernel<T, kColumns, decltype(plain)::value>>(
        blocks, kAttentionThreads, Tile::kShared, launch, args);
  });
}

}  // namespace catena::gpu
