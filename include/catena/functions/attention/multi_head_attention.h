// Attention as a layer with projections.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "catena/autograd/function_set.h"
#include "catena/functions/attention/key_value_cache.h"
#include "catena/functions/attention/rotary_embedding.h"
#include "catena/functions/attention/scaled_dot_product_attention.h"
#include "catena/functions/connection/linear.h"

namespace catena::functions {

// Start values, dropout and dtype of a MultiHeadAttention. The projections have different shapes:
// an array is a ValueError.
struct MultiHeadAttentionOptions {
  std::optional<int64_t> groups =
      {};  // heads of keys and values; as many as of queries unless given
  // Turns queries and keys by their positions, 0, 1, ... or those in a cache; without `positions`.
  std::optional<RotaryOptions> rotary = {};
  double dropout = 0;  // of the weights of keys, in train state
  bool nobias = false;
  InitialValue initialW = {};  // of both projections; that of Linear unless given
  InitialValue initial_bias = {};
  Dtype dtype = Dtype::kFloat32;
};

// Keys and values that a MultiHeadAttention makes of a memory, (batch, groups, keys, depth) each.
struct MemoryKeys {
  MemoryKeys(Variable k_, Variable v_) : k(std::move(k_)), v(std::move(v_)) {}
  Variable k, v;
};

// Heads that attend (Vaswani et al. 2017): y = out_proj(attention(q, k, v)), where q, k and v are
// the parts of x in_proj_W^T + in_proj_b, cut into heads of size / heads numbers. x: (batch,
// positions, size). The parts of a projection are attended to where they are, without copies.
// Parameters have PyTorch's order and, by NameMap::from_pytorch(), its names.
//
// ValueError unless heads divides size and groups divides heads, for rotary options that
// rotary_embedding refuses or that have positions, and for memory beside rotary positions;
// ShapeError for x of another shape, and for memory of another size or batch; errors of options are
// those of scaled_dot_product_attention, whose dropout is that of the layer unless it is given.
class MultiHeadAttention : public FunctionSet {
 public:
  MultiHeadAttention(int64_t size, int64_t heads, const MultiHeadAttentionOptions& options = {});

  // The positions of x attend to each other.
  Variable operator()(const VariableOperand& x, const AttentionOptions& options = {}) const;
  // The positions of x follow those in a layer's cache, which gets their keys and values, and
  // attend to these and to each other, causally. Errors are those of LayerCache::attend.
  Variable operator()(const VariableOperand& x, const LayerCache& cache,
                      const AttentionOptions& options = {}) const;
  // The positions of x attend to those of `memory`, (batch, keys, size).
  Variable operator()(const VariableOperand& x, const VariableOperand& memory,
                      const AttentionOptions& options = {}) const;
  // The same by what this layer makes of the memory, for generation, in which each word attends to
  // one memory. Rows may be taken or repeated meanwhile, as many as x has.
  MemoryKeys keys_of(const VariableOperand& memory) const;
  Variable operator()(const VariableOperand& x, const MemoryKeys& memory,
                      const AttentionOptions& options = {}) const;

  // What the layer was made with.
  int64_t size() const { return out_proj.out_size(); }
  int64_t heads() const { return heads_; }
  int64_t groups() const { return groups_; }
  int64_t depth() const { return size() / heads_; }
  double dropout() const { return dropout_; }

  OwnedParameter in_proj_W;  // (size + 2 * groups * depth, size): rows of q, then k, then v
  std::optional<OwnedParameter> in_proj_b;  // not with nobias
  Linear out_proj;                          // W: (size, size)
  CATENA_FUNCTIONS(in_proj_W, in_proj_b, out_proj)

 private:
  struct Heads {
    Variable q, k, v;
  };
  Heads heads_of(const Variable& x) const;
  void turn(Heads& heads, const std::optional<Array>& positions) const;
  Variable part_of_projection(const Variable& x, const Slice& rows) const;
  AttentionOptions in_state(const AttentionOptions& options) const;
  Variable projected(const Variable& y) const;
  int64_t heads_, groups_;
  std::optional<RotaryOptions> rotary_;
  double dropout_;
};

}  // namespace catena::functions
