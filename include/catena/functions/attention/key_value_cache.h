// Keys and values of the positions that a model has seen, for generation token by token.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "catena/functions/attention/scaled_dot_product_attention.h"

namespace catena::functions {

// Sizes of a KeyValueCache, all of which are at least 1.
struct KeyValueCacheOptions {
  int64_t layers = 1, batch = 1;
  int64_t groups = 1;             // heads of keys
  int64_t capacity = 1;           // positions of each row of the batch
  int64_t depth = 1;              // numbers of a key, and of a value
  Dtype dtype = Dtype::kFloat32;  // that of the keys: under autocast the scope's
  Device device = current_device();
};

// The part of a KeyValueCache that belongs to one layer of attention. How keys are stored is known
// here alone.
class LayerCache {
 public:
  // Writes k and v, (batch, groups, n, depth), to the n positions that the last extend() of the
  // cache made room for, and gives the attention of q, (batch, heads, n, depth), to all positions
  // of its row up to its own, itself included: (batch, heads, n, depth). Always causal. Masks and
  // biases are those of `capacity` keys: (batch, heads, n, capacity), or broadcast.
  //
  // GradientError unless a NoBackprop scope is open; ShapeError, DtypeError and DeviceError for
  // what does not fit the cache; ValueError without a room, for a second call in one room, and for
  // options that the cache has itself: key_lengths, query_start, documents.
  Variable attend(const VariableOperand& q, const VariableOperand& k, const VariableOperand& v,
                  const AttentionOptions& options = {}) const;

  // Throws what attend() would of its operands and of options that the cache has, and does nothing:
  // for layers that turn keys by positions() first.
  void check(const VariableOperand& q, const VariableOperand& k, const VariableOperand& v,
             const AttentionOptions& options = {}) const;
  // Those of the cache.
  const Array& positions() const;

 private:
  friend class KeyValueCache;
  struct Shared;
  LayerCache(std::shared_ptr<Shared> shared, int64_t layer);
  std::shared_ptr<Shared> shared_;
  int64_t layer_;
};

// Keys and values of all layers of a model, (batch, groups, capacity, depth) each, and how many
// positions each row of the batch has. Nothing is allocated after the construction but the
// positions of a room.
//
//   const NoBackprop scope;
//   F::KeyValueCache cache(
//       {.layers = 12, .batch = 4, .groups = 12, .capacity = 1024, .depth = 64});
//   cache.extend(n);  // room for the prompts, then for one token
//   h = tokens(ids) + places(cache.positions());
//   for (int64_t i = 0; i < 12; ++i) h = layers[i](h, cache.layer(i));
//
// Prompts of different lengths are padded behind their ends, and cut back with truncate() to what
// they have: padding is behind all positions that count, so that none of them attends to it, and
// what comes next is written over it.
//
// A captured graph may extend the cache and use its layers. Lengths are on the device, and what
// they are on the host follows each launch. A launch that finds the cache full is a ValueError.
class KeyValueCache {
 public:
  // ValueError for sizes below 1, DtypeError for a dtype that is not floating, Error in a capture.
  explicit KeyValueCache(const KeyValueCacheOptions& options);
  KeyValueCache(KeyValueCache&&) noexcept = default;
  KeyValueCache& operator=(KeyValueCache&&) noexcept = default;

  // Makes room for n more positions in each row, which every layer then writes once. ValueError
  // for n below 1, where a row has fewer left than n, and where a layer did not write the last
  // room. The cache is then as before.
  void extend(int64_t n);
  // Those of the last room: int32 (batch, n), n numbers from the length that each row had. For
  // vectors of positions, and for the keys of rotary_embedding. ValueError before extend().
  const Array& positions() const;

  // Makes rows shorter; no row may become longer. clear() is truncate() to 0. ValueError for other
  // lengths, Error in a capture.
  void truncate(const std::vector<int64_t>& lengths);
  void clear();

  // Row i becomes what row rows[i] was, for beam search, in which several texts go on from one.
  // ValueError for another number of rows, and where a layer did not write the last room;
  // IndexError for rows that there are not; Error in a capture.
  void reorder(const std::vector<int64_t>& rows);

  // That of layer i. IndexError for others. It may outlive the cache.
  LayerCache layer(int64_t i) const;
  // Positions of each row, and what the cache was made with.
  const std::vector<int64_t>& lengths() const;
  const KeyValueCacheOptions& options() const;

 private:
  LayerCache::Shared& shared() const;  // ValueError for a cache that was moved from

  std::shared_ptr<LayerCache::Shared> shared_;
};

}  // namespace catena::functions
