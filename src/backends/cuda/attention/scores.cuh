// Scores of a query and a key: which of them count, and what bias, softcap, mask and dropout do.
#pragma once

#include "backends/cuda/attention/tile.cuh"
#include "backends/cuda/common/philox_source.cuh"

namespace catena::gpu {
namespace {

constexpr float kInfinity = __builtin_huge_valf();

// [begin, end) of the keys of one batch entry, for queries.
class RangeReader {
 public:
  __device__ RangeReader(const AttentionArgs& args, int batch)
      : ranges_(args.ranges),
        queries_(args.queries),
        keys_(args.keys),
        first_(batch * int64_t(args.queries)),
        first_bound_(batch * int64_t((args.queries + kBoundQueries - 1) / kBoundQueries)) {}

  // Empty for a query that is not there.
  __device__ int2 of(int query) const {
    if (query >= queries_) return {0, 0};
    if (ranges_.of_query) return ranges_.of_query[first_ + query];
    const int64_t position = query + int64_t(keys_) - queries_;
    return {begin_at(position), end_at(position)};
  }
  // As KeyRanges::of_bound, of kQueries queries.
  template <int kQueries>
  __device__ int4 of_tile(int tile) const {
    const int first = tile * kQueries, last = min(first + kQueries, queries_) - 1;
    if (!ranges_.of_bound) {
      const int2 a = of(first), b = of(last);
      return {a.x, b.y, b.x, a.y};
    }
    int4 all = {keys_, 0, 0, keys_};
    for (int i = first / kBoundQueries; i <= last / kBoundQueries; ++i) {
      const int4 one = ranges_.of_bound[first_bound_ + i];
      all = {min(all.x, one.x), max(all.y, one.y), max(all.z, one.z), min(all.w, one.w)};
    }
    return all;
  }
  // Keys that may be read.
  __device__ int keys(int batch) const {
    return ranges_.lengths ? max(0, min(ranges_.lengths[batch], keys_)) : keys_;
  }

 private:
  __device__ int begin_at(int64_t position) const {
    const int64_t first = ranges_.window > 0 ? position - ranges_.window + 1 : 0;
    return int(first < 0 ? 0 : first < keys_ ? first : keys_);
  }
  __device__ int end_at(int64_t position) const {
    int64_t end = keys_;
    if (ranges_.causal && position + 1 < end) end = position + 1;
    if (ranges_.window > 0 && position + ranges_.window < end) end = position + ranges_.window;
    return int(end < 0 ? 0 : end);
  }

  const KeyRanges& ranges_;
  int queries_, keys_;
  int64_t first_, first_bound_;
};

// Bias, mask, softcap and dropout of one head.
template <class T>
class ScoreRules {
 public:
  __device__ ScoreRules(const AttentionArgs& args, int batch, int head)
      : args_(args),
        bias_(batch * args.bias.batch + head * args.bias.head),
        mask_(batch * args.mask.batch + head * args.mask.head),
        element_((int64_t(batch) * args.heads + head) * args.queries * args.keys),
        blocks_(args.random) {}

  // The score, from scale * q k^T. -inf where the mask forbids the key. `slope`: the derivative.
  __device__ float score(float x, int query, int key, float* slope) const {
    if (args_.softcap > 0) {
      const float t = tanhf(x / args_.softcap);
      x = t * args_.softcap;
      *slope = 1 - t * t;
    } else {
      *slope = 1;
    }
    if (args_.bias.data) {
      const int64_t at = bias_ + query * args_.bias.query + key * args_.bias.key;
      x += args_.wide_bias ? static_cast<const float*>(args_.bias.data)[at]
                           : float(widen(static_cast<const T*>(args_.bias.data)[at]));
    }
    if (args_.mask.data) {
      const int64_t at = mask_ + query * args_.mask.query + key * args_.mask.key;
      if (!static_cast<const bool*>(args_.mask.data)[at]) return -kInfinity;
    }
    return x;
  }
  // What dropout makes of 1.
  __device__ float factor(int query, int key) const {
    const uint64_t element = uint64_t(element_ + int64_t(query) * args_.keys + key);
    const philox::Block block = blocks_[int64_t(element / 4)];
    const unsigned k = unsigned(element % 4);
    const unsigned word = k == 0   ? block.word[0]
                          : k == 1 ? block.word[1]
                          : k == 2 ? block.word[2]
                                   : block.word[3];
    return philox::unit24(word) >= args_.dropout ? args_.kept : 0;
  }

 private:
  const AttentionArgs& args_;
  int64_t bias_, mask_, element_;
  Blocks blocks_;
};

// The value where a query does not attend to the key.
template <int kRows, int kTiles>
__device__ void fill_outside(float (&numbers)[kRows][kTiles][4], float value,
                             const RangeReader& ranges, int own, int key) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int2 range = ranges.of(own + r * 16 + h * 8 + g);
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int at = key + 8 * j + 2 * t + i;
          if (at < range.x || at >= range.y) numbers[r][j][2 * h + i] = value;
        }
      }
    }
  }
}

template <class T>
__device__ T* rows_of(const Heads& heads, int batch, int head) {
  return static_cast<T*>(heads.data) + batch * heads.batch + head * heads.head;
}

}  // namespace
}  // namespace catena::gpu
