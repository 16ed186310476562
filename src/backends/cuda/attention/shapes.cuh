// Sizes of the tiles of attention's kernels, by the elements and the columns of their heads. kRows:
// tiles of 16 rows that a warp has. They fit the registers of a thread, 255, and leave room for a
// second block where shared memory allows.
#pragma once

#include <stddef.h>

#include "backends/cuda/attention/attention.h"

namespace catena::gpu {
namespace {

constexpr int kAttentionThreads = 128, kAttentionWarps = 4;

// Rows of a tile are 16 bytes apart from what they hold, so that eight of them are in different
// banks.
template <class T, int kColumns>
constexpr int kTileStride = kColumns + 16 / int(sizeof(T));

template <class T, int kColumns>
struct ForwardTile {
  static constexpr bool kIsWide = sizeof(T) == 4;
  static constexpr int kRows = kIsWide || kColumns > 128 ? 1 : 2;
  static constexpr int kKeys = kIsWide && kColumns > 64 ? 32 : 64;
  static constexpr int kQueries = 16 * kAttentionWarps * kRows;
  static constexpr size_t kShared = (kQueries + 2 * kKeys) * kTileStride<T, kColumns> * sizeof(T);
};

template <class T, int kColumns>
struct QueryGradTile {
  static constexpr bool kIsWide = sizeof(T) == 4;
  static constexpr int kRows = kIsWide || kColumns > 128 ? 1 : 2;
  static constexpr int kKeys = kIsWide || kColumns > 64 ? 32 : 64;
  static constexpr int kQueries = 16 * kAttentionWarps * kRows;
  static constexpr size_t kShared =
      (2 * kQueries + 2 * kKeys) * kTileStride<T, kColumns> * sizeof(T);
};

// What a row of scores needs: its largest score, the logarithm of the rest (base 2), and what is
// subtracted from gradients of weights. A row without keys, or that is not there, has no weights.
struct RowNorms {
  float largest, rest, subtracted;
};

template <class T, int kColumns>
struct KeyGradTile {
  static constexpr bool kIsWide = sizeof(T) == 4;
  static constexpr bool kIsSplit = kColumns > 128;  // both accumulators are too many for a kernel
  static constexpr int kRows = kIsWide || kColumns > 64 ? 1 : 2;
  static constexpr int kQueries = kIsWide && kColumns > 128 ? 16 : 32;
  static constexpr int kKeys = 16 * kAttentionWarps * kRows;
  // Keys and values, and two stages of queries and gradients with their norms.
  static constexpr size_t kStage = 2 * kQueries * kTileStride<T, kColumns> * sizeof(T);
  static constexpr size_t kNorms = kQueries * (sizeof(RowNorms) + sizeof(int2));
  static constexpr size_t kShared =
      2 * kKeys * kTileStride<T, kColumns> * sizeof(T) + 2 * (kStage + kNorms);
};

}  // namespace
}  // namespace catena::gpu
