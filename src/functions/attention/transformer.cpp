#include "catena/functions/attention/transformer.h"

#include "catena/functions/activation/elementwise.h"
#include "catena/functions/noise/dropout.h"
#include "functions/attention/positions.h"

namespace catena::functions {
namespace {

constexpr const char *kEncoder = "TransformerEncoderLayer", *kDecoder = "TransformerDecoderLayer";

MultiHeadAttention attention_of(int64_t size, int64_t heads, const TransformerOptions& o,
                                const std::optional<RotaryOptions>& rotary = {}) {
  return MultiHeadAttention(size, heads,
                            {.groups = o.groups,
                             .rotary = rotary,
                             .dropout = o.dropout,
                             .nobias = o.nobias,
                             .initialW = o.initialW,
                             .dtype = o.dtype});
}

Linear product_of(const char* layer, int64_t in, int64_t out, const TransformerOptions& o) {
  CATENA_CHECK(ValueError, o.inner > 0, layer, ": expected inner numbers, got ", o.inner);
  return Linear(in, out, {.nobias = o.nobias, .initialW = o.initialW, .dtype = o.dtype});
}

LayerNormalization normalization_of(int64_t size, const TransformerOptions& o) {
  return LayerNormalization(size, {.eps = o.eps, .dtype = o.dtype});
}

Variable activated(const Variable& x, TransformerActivation activation) {
  switch (activation) {
    case TransformerActivation::kRelu: return relu(x);
    case TransformerActivation::kGelu: return gelu(x);
    case TransformerActivation::kGeluTanh: return gelu_tanh(x);
  }
  fail<ValueError>("TransformerOptions: activation ", int(activation), " is none of them");
}

Variable at_each_position(const Variable& x, const Linear& first, const Linear& second,
                          const FeedForwardOptions& options) {
  if (first.b.defined()) return feed_forward(x, first.W, first.b, second.W, second.b, options);
  return feed_forward(x, first.W, second.W, options);
}

// The blocks of a layer in its present state, one behind the other.
class Blocks {
 public:
  Blocks(ResidualStream& stream, const TransformerOptions& options, bool training)
      : stream_(stream), options_(options), training_(training) {}

  template <class Block>
  void add(const LayerNormalization& norm, const Block& block) {
    if (options_.pre_norm) {
      stream_.add(dropped(block(stream_.normalized(norm))));
    } else {
      stream_.add(dropped(block(stream_.sum())));
      stream_ = ResidualStream(stream_.normalized(norm));
    }
  }
  // Two products at each position.
  void add_products(const LayerNormalization& norm, const Linear& first, const Linear& second) {
    add(norm, [&](const Variable& x) {
      const bool drops = training_ && options_.dropout != 0;
      if (drops || first.b.defined() != second.b.defined())
        return second(dropped(activated(first(x), options_.activation)));
      return at_each_position(x, first, second, {.activation = options_.activation});
    });
  }

 private:
  Variable dropped(const Variable& x) const { return dropout(x, options_.dropout, training_); }

  ResidualStream& stream_;
  const TransformerOptions& options_;
  bool training_;
};

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t size, int64_t heads,
                                                 const TransformerOptions& o)
    : self_attn(attention_of(size, heads, o, o.rotary)),
      linear1(product_of(kEncoder, size, o.inner, o)),
      linear2(product_of(kEncoder, o.inner, size, o)),
      norm1(normalization_of(size, o)),
      norm2(normalization_of(size, o)),
      options_(o) {}

template <class Attention>
void TransformerEncoderLayer::add_blocks(ResidualStream& stream, const Attention& attention) const {
  Blocks blocks(stream, options_, training());
  blocks.add(norm1, attention);
  blocks.add_products(norm2, linear1, linear2);
}

void TransformerEncoderLayer::add_to(ResidualStream& stream,
                                     const AttentionOptions& options) const {
  add_blocks(stream, [&](const Variable& in) { return self_attn(in, options); });
}

void TransformerEncoderLayer::add_to(ResidualStream& stream, const LayerCache& cache,
                                     const AttentionOptions& options) const {
  add_blocks(stream, [&](const Variable& in) { return self_attn(in, cache, options); });
}

Variable TransformerEncoderLayer::operator()(const VariableOperand& operand,
                                             const AttentionOptions& options) const {
  const Variable& x = operand.variable(kEncoder);
  check_positions(kEncoder, "x", x, self_attn.size());
  ResidualStream stream(x);
  add_to(stream, options);
  return stream.sum();
}

Variable TransformerEncoderLayer::operator()(const VariableOperand& operand,
                                             const LayerCache& cache,
                                             const AttentionOptions& options) const {
  const Variable& x = operand.variable(kEncoder);
  check_positions(kEncoder, "x", x, self_attn.size());
  ResidualStream stream(x);
  add_to(stream, cache, options);
  return stream.sum();
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t size, int64_t heads,
                                                 const TransformerOptions& o)
    : self_attn(attention_of(size, heads, o, o.rotary)),
      multihead_attn(attention_of(size, heads, o)),
      linear1(product_of(kDecoder, size, o.inner, o)),
      linear2(product_of(kDecoder, o.inner, size, o)),
      norm1(normalization_of(size, o)),
      norm2(normalization_of(size, o)),
      norm3(normalization_of(size, o)),
      options_(o) {}

template <class Attention, class Memory>
void TransformerDecoderLayer::add_blocks(ResidualStream& stream, const Memory& memory,
                                         const AttentionOptions& to_memory,
                                         const Attention& attention) const {
  Blocks blocks(stream, options_, training());
  blocks.add(norm1, attention);
  blocks.add(norm2, [&](const Variable& in) { return multihead_attn(in, memory, to_memory); });
  blocks.add_products(norm3, linear1, linear2);
}

void TransformerDecoderLayer::add_to(ResidualStream& stream, const VariableOperand& memory,
                                     const AttentionOptions& to_self,
                                     const AttentionOptions& to_memory) const {
  check_positions(kDecoder, "memory", memory.variable(kDecoder), self_attn.size());
  add_blocks(stream, memory, to_memory, [&](const Variable& in) { return self_attn(in, to_self); });
}

void TransformerDecoderLayer::add_to(ResidualStream& stream, const MemoryKeys& memory,
                                     const LayerCache& cache, const AttentionOptions& to_self,
                                     const AttentionOptions& to_memory) const {
  add_blocks(stream, memory, to_memory,
             [&](const Variable& in) { return self_attn(in, cache, to_self); });
}

// What add_to(stream, args...) makes of x.
template <class... Args>
Variable TransformerDecoderLayer::sum_with(const VariableOperand& operand,
                                           const Args&... args) const {
  const Variable& x = operand.variable(kDecoder);
  check_positions(kDecoder, "x", x, self_attn.size());
  ResidualStream stream(x);
  add_to(stream, args...);
  return stream.sum();
}

Variable TransformerDecoderLayer::operator()(const VariableOperand& x,
                                             const VariableOperand& memory,
                                             const AttentionOptions& to_self,
                                             const AttentionOptions& to_memory) const {
  return sum_with(x, memory, to_self, to_memory);
}

Variable TransformerDecoderLayer::operator()(const VariableOperand& x,
                                             const VariableOperand& memory, const LayerCache& cache,
                                             const AttentionOptions& to_self,
                                             const AttentionOptions& to_memory) const {
  check_positions(kDecoder, "memory", memory.variable(kDecoder), self_attn.size());
  return (*this)(x, multihead_attn.keys_of(memory), cache, to_self, to_memory);
}

Variable TransformerDecoderLayer::operator()(const VariableOperand& x, const MemoryKeys& memory,
                                             const LayerCache& cache,
                                             const AttentionOptions& to_self,
                                             const AttentionOptions& to_memory) const {
  return sum_with(x, memory, cache, to_self, to_memory);
}

}  // namespace catena::functions
