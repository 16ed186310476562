// The layers of transformers: blocks of attention and of products at each position.
#pragma once

#include <cstdint>
#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/functions/attention/multi_head_attention.h"
#include "catena/functions/connection/feed_forward.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/normalization/residual_stream.h"

namespace catena::functions {

// Options of the layers below; defaults are PyTorch's, but for the start values.
struct TransformerOptions {
  int64_t inner = 2048;  // numbers between the two products
  double dropout =
      0.1;  // in train state: of weights of keys, of inner numbers, and of what is added
  TransformerActivation activation = TransformerActivation::kRelu;
  bool pre_norm = false;  // normalizes what goes into a block instead of the sum behind it
  double eps = 1e-5;      // of the normalizations
  std::optional<int64_t> groups = {};        // heads of keys and values
  std::optional<RotaryOptions> rotary = {};  // positions of the self-attention
  bool nobias = false;         // of the products; normalizations keep theirs, which PyTorch's lose
  InitialValue initialW = {};  // of all products; that of Linear unless given
  Dtype dtype = Dtype::kFloat32;
};

// A layer of an encoder (Vaswani et al. 2017): self-attention, then two products at each position,
// each added to what goes in. x: (batch, positions, size). With pre_norm (Xiong et al. 2020)
//   x = x + self_attn(norm1(x)),  x = x + linear2(activation(linear1(norm2(x))))
// else
//   x = norm1(x + self_attn(x)),  x = norm2(x + linear2(activation(linear1(x))))
// Where nothing is dropped between the products they are one feed_forward. A decoder without
// cross-attention, such as GPT-2's, is this layer with {.causal = true}.
// Parameters have PyTorch's order and, by NameMap::from_pytorch(), the names of
// nn.TransformerEncoderLayer. Errors are those of MultiHeadAttention.
class TransformerEncoderLayer : public FunctionSet {
 public:
  TransformerEncoderLayer(int64_t size, int64_t heads, const TransformerOptions& options = {});
  // `options` are those of the self-attention.
  Variable operator()(const VariableOperand& x, const AttentionOptions& options = {}) const;
  // With the cache of this layer, as MultiHeadAttention, for which it is causal.
  Variable operator()(const VariableOperand& x, const LayerCache& cache,
                      const AttentionOptions& options = {}) const;
  // The same between other layers: what the last block makes is left to the next normalization of
  // the stream to add.
  void add_to(ResidualStream& stream, const AttentionOptions& options = {}) const;
  void add_to(ResidualStream& stream, const LayerCache& cache,
              const AttentionOptions& options = {}) const;

  // The parts, of which the normalizations belong to the blocks in order.
  MultiHeadAttention self_attn;
  Linear linear1, linear2;
  LayerNormalization norm1, norm2;
  CATENA_FUNCTIONS(self_attn, linear1, linear2, norm1, norm2)

 private:
  template <class Attention>
  void add_blocks(ResidualStream& stream, const Attention& attention) const;
  TransformerOptions options_;
};

// A layer of a decoder: self-attention, attention to the results of an encoder, and two products,
// with norm1, norm2 and norm3. x: (batch, positions, size), memory: (batch, keys, size). The
// self-attention is causal unless its options are given. Parameters have PyTorch's order and, by
// NameMap::from_pytorch(), the names of nn.TransformerDecoderLayer.
class TransformerDecoderLayer : public FunctionSet {
 public:
  TransformerDecoderLayer(int64_t size, int64_t heads, const TransformerOptions& options = {});
  Variable operator()(const VariableOperand& x, const VariableOperand& memory,
                      const AttentionOptions& to_self = {.causal = true},
                      const AttentionOptions& to_memory = {}) const;
  // With the cache of this layer's self-attention. What the memory projects to is made anew, or is
  // what multihead_attn.keys_of(memory) gave before.
  Variable operator()(const VariableOperand& x, const VariableOperand& memory,
                      const LayerCache& cache, const AttentionOptions& to_self = {},
                      const AttentionOptions& to_memory = {}) const;
  Variable operator()(const VariableOperand& x, const MemoryKeys& memory, const LayerCache& cache,
                      const AttentionOptions& to_self = {},
                      const AttentionOptions& to_memory = {}) const;
  // The same between other layers, as those of an encoder.
  void add_to(ResidualStream& stream, const VariableOperand& memory,
              const AttentionOptions& to_self = {.causal = true},
              const AttentionOptions& to_memory = {}) const;
  void add_to(ResidualStream& stream, const MemoryKeys& memory, const LayerCache& cache,
              const AttentionOptions& to_self = {}, const AttentionOptions& to_memory = {}) const;

  // The parts; multihead_attn is that to the memory.
  MultiHeadAttention self_attn, multihead_attn;
  Linear linear1, linear2;
  LayerNormalization norm1, norm2, norm3;
  CATENA_FUNCTIONS(self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3)

 private:
  template <class... Args>
  Variable sum_with(const VariableOperand& x, const Args&... args) const;
  template <class Attention, class Memory>
  void add_blocks(ResidualStream& stream, const Memory& memory, const AttentionOptions& to_memory,
                  const Attention& attention) const;
  TransformerOptions options_;
};

}  // namespace catena::functions
