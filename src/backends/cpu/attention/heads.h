// Heads of an attention call as the CPU's kernels see them: extents, the keys that rules leave to
// each query, rows in the compute type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "backends/cpu/common/loops_of.h"
#include "catena/array/array.h"
#include "catena/kernels/attention.h"

namespace catena::host {

// Queries and keys whose scores are in memory at a time: they stay in the second-level cache beside
// the rows that make them.
inline constexpr int64_t kAttentionQueries = 64, kAttentionKeys = 128;

struct AttentionExtents {
  explicit AttentionExtents(const AttentionCall& call);
  int64_t tiles() const { return (queries + kAttentionQueries - 1) / kAttentionQueries; }
  // Of a head, counted over the batch.
  int64_t all_heads() const { return batch * heads; }
  int64_t heads_of_group() const { return heads / groups; }

  int64_t batch, heads, groups, queries, keys, depth, width;
};

// Keys [begin, end).
struct KeyRange {
  int64_t begin, end;
  bool is_empty() const { return begin >= end; }
  KeyRange within(int64_t first, int64_t last) const {
    return {std::max(begin, first), std::min(end, last)};
  }
};

// The keys that the rules of a call leave to queries.
class AttentionRanges {
 public:
  explicit AttentionRanges(const AttentionCall& call);
  KeyRange of(int64_t batch, int64_t query) const;
  // The smallest range with those of a tile of queries.
  KeyRange of_tile(int64_t batch, int64_t tile) const {
    return tiles_[size_t(batch * count_ + tile)];
  }
  // The keys that may be read.
  int64_t keys(int64_t batch) const;

 private:
  struct Document {
    int64_t start;  // of positions: query i is at i + start
    KeyRange keys;
  };
  void read_documents(const Array& queries, const Array& keys);
  Document document_of(int64_t batch, int64_t query) const;

  const AttentionRules& rules_;
  int64_t queries_, keys_, count_;   // of tiles of a head
  std::vector<Document> documents_;  // of each query, where there are documents
  std::vector<KeyRange> tiles_;      // of each batch entry
};

// Rows of an (n, columns) matrix for Gemm: unit stride along one axis.
template <class C>
struct AttentionRows {
  const C* data;
  int64_t row, column;
};

// Reads rows of a head of a (batch, heads, rows, columns) array, in memory of its own where they
// are not as Gemm takes them.
template <class C>
class AttentionReader {
 public:
  AttentionReader(const Array& array, int64_t most_rows);
  AttentionRows<C> rows(int64_t batch, int64_t head, int64_t first, int64_t count);
  // A copy, multiplied by a factor.
  AttentionRows<C> scaled(int64_t batch, int64_t head, int64_t first, int64_t count, C factor);

 private:
  const char* at(int64_t batch, int64_t head, int64_t row) const;
  AttentionRows<C> copied(const char* from, int64_t count);

  const Array& array_;
  int64_t columns_;
  bool is_direct_;
  CastLoop cast_;
  std::unique_ptr<C[]> buffer_;
};

// Writes contiguous rows of the compute type to such an array.
template <class C>
void write_attention_rows(const C* rows, const Array& array, int64_t batch, int64_t head,
                          int64_t first, int64_t count);

// The scores of a tile of queries and keys of one head, and what became of them.
template <class C>
class AttentionTile {
 public:
  AttentionTile(const AttentionCall& call, const AttentionRanges& ranges);
  struct Place {
    int64_t batch, head, query, queries, key, keys;
  };

  // scores = those of the scaled queries q and of k, with softcap and bias. What a query must not
  // attend to is -inf within its range(row); outside of it the scores are undefined.
  void make(const Place& place, const AttentionRows<C>& q, const AttentionRows<C>& k);
  // Relative to the first key of the tile.
  KeyRange range(int64_t row) const { return ranges_of_rows_[size_t(row)]; }
  C* row(int64_t row) { return scores_.get() + row * kAttentionKeys; }
  const C* scores() const { return scores_.get(); }
  // 0 outside of the range of each row.
  void clear_outside(int64_t row);
  // Multiplies each of `rows`, laid out as row `row` of the tile, by what dropout makes of its
  // elements. Random words are drawn once for all of them.
  void drop(int64_t row, std::initializer_list<C*> rows);
  // Multiplies a row of gradients by the derivative of the softcap.
  void uncap(int64_t row, C* gradients) const;

 private:
  void cap(int64_t row);
  void add_bias(int64_t row);
  void remove_masked(int64_t row);

  const AttentionCall& call_;
  const AttentionRanges& ranges_;
  RandomBits bits_;
  Place place_{};
  std::unique_ptr<C[]> scores_, tanh_;
  std::vector<KeyRange> ranges_of_rows_;
};

}  // namespace catena::host
