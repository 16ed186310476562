#include "catena/functions/attention/transformer.h"

#include "catena/functions/activation/elementwise.h"
#include "catena/functions/math/elementwise.h"
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

// The blocks of a layer, one behind the other, in its present state.
class Stream {
 public:
  Stream(const Variable& x, const TransformerOptions& options, bool training)
      : options_(options), training_(training), x_(x) {}

  template <class Block>
  void add(const LayerNormalization& norm, const Block& block) {
    if (options_.pre_norm)
      made_ = dropped(block(normalized(norm)));
    else
      x_ = norm(x_, dropped(block(x_))).y;
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
  Variable result() const { return made_.defined() ? x_ + made_ : x_; }

 private:
  Variable dropped(const Variable& x) const { return dropout(x, options_.dropout, training_); }
  // What the last block made is added on the way.
  Variable normalized(const LayerNormalization& norm) {
    if (!made_.defined()) return norm(x_);
    const AddNormalizationResult both = norm(x_, made_);
    x_ = both.sum;
    return both.y;
  }

  const TransformerOptions& options_;
  bool training_;
  Variable x_, made_;  // made_: by the last block, and not added yet
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
Variable TransformerEncoderLayer::through(const VariableOperand& operand,
                                          const Attention& attention) const {
  const Variable& x = operand.variable(kEncoder);
  check_positions(kEncoder, "x", x, self_attn.size());
  Stream stream(x, options_, training());
  stream.add(norm1, attention);
  stream.add_products(norm2, linear1, linear2);
  return stream.result();
}

Variable TransformerEncoderLayer::operator()(const VariableOperand& x,
                                             const AttentionOptions& options) const {
  return through(x, [&](const Variable& in) { return self_attn(in, options); });
}

Variable TransformerEncoderLayer::operator()(const VariableOperand& x, const LayerCache& cache,
                                             const AttentionOptions& options) const {
  return through(x, [&](const Variable& in) { return self_attn(in, cache, options); });
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

template <class Attention>
Variable TransformerDecoderLayer::through(const VariableOperand& operand,
                                          const VariableOperand& memory_operand,
                                          const AttentionOptions& to_memory,
                                          const Attention& attention) const {
  const Variable &x = operand.variable(kDecoder), &memory = memory_operand.variable(kDecoder);
  check_positions(kDecoder, "x", x, self_attn.size());
  check_positions(kDecoder, "memory", memory, self_attn.size());
  Stream stream(x, options_, training());
  stream.add(norm1, attention);
  stream.add(norm2, [&](const Variable& in) { return multihead_attn(in, memory, to_memory); });
  stream.add_products(norm3, linear1, linear2);
  return stream.result();
}

Variable TransformerDecoderLayer::operator()(const VariableOperand& x,
                                             const VariableOperand& memory,
                                             const AttentionOptions& to_self,
                                             const AttentionOptions& to_memory) const {
  return through(x, memory, to_memory, [&](const Variable& in) { return self_attn(in, to_self); });
}

Variable TransformerDecoderLayer::operator()(const VariableOperand& x,
                                             const VariableOperand& memory, const LayerCache& cache,
                                             const AttentionOptions& to_self,
                                             const AttentionOptions& to_memory) const {
  return through(x, memory, to_memory,
                 [&](const Variable& in) { return self_attn(in, cache, to_self); });
}

}  // namespace catena::functions
