#include "catena/functions/attention/transformer.h"

#include "catena/functions/activation/elementwise.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/noise/dropout.h"
#include "functions/attention/positions.h"

namespace catena::functions {
namespace {

constexpr const char *kEncoder = "TransformerEncoderLayer", *kDecoder = "TransformerDecoderLayer";

MultiHeadAttention attention_of(int64_t size, int64_t heads, const TransformerOptions& o) {
  return MultiHeadAttention(size, heads,
                            {.groups = o.groups,
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

// The blocks of a layer in its present state.
struct Blocks {
  const TransformerOptions& options;
  bool training;

  Variable dropped(const Variable& x) const { return dropout(x, options.dropout, training); }
  // x and what a block makes of it.
  template <class Block>
  Variable added(const Variable& x, const LayerNormalization& norm, const Block& block) const {
    if (options.pre_norm) return x + dropped(block(norm(x)));
    return norm(x + dropped(block(x)));
  }
  Variable products(const Variable& x, const Linear& first, const Linear& second) const {
    return second(dropped(activated(first(x), options.activation)));
  }
};

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t size, int64_t heads,
                                                 const TransformerOptions& o)
    : self_attn(attention_of(size, heads, o)),
      linear1(product_of(kEncoder, size, o.inner, o)),
      linear2(product_of(kEncoder, o.inner, size, o)),
      norm1(normalization_of(size, o)),
      norm2(normalization_of(size, o)),
      options_(o) {}

Variable TransformerEncoderLayer::operator()(const VariableOperand& operand,
                                             const AttentionOptions& options) const {
  const Variable& x = operand.variable(kEncoder);
  check_positions(kEncoder, "x", x, self_attn.size());
  const Blocks blocks{options_, training()};
  const Variable h =
      blocks.added(x, norm1, [&](const Variable& in) { return self_attn(in, options); });
  return blocks.added(h, norm2,
                      [&](const Variable& in) { return blocks.products(in, linear1, linear2); });
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t size, int64_t heads,
                                                 const TransformerOptions& o)
    : self_attn(attention_of(size, heads, o)),
      multihead_attn(attention_of(size, heads, o)),
      linear1(product_of(kDecoder, size, o.inner, o)),
      linear2(product_of(kDecoder, o.inner, size, o)),
      norm1(normalization_of(size, o)),
      norm2(normalization_of(size, o)),
      norm3(normalization_of(size, o)),
      options_(o) {}

Variable TransformerDecoderLayer::operator()(const VariableOperand& operand,
                                             const VariableOperand& memory_operand,
                                             const AttentionOptions& to_self,
                                             const AttentionOptions& to_memory) const {
  const Variable &x = operand.variable(kDecoder), &memory = memory_operand.variable(kDecoder);
  check_positions(kDecoder, "x", x, self_attn.size());
  check_positions(kDecoder, "memory", memory, self_attn.size());
  const Blocks blocks{options_, training()};
  const Variable own =
      blocks.added(x, norm1, [&](const Variable& in) { return self_attn(in, to_self); });
  const Variable h = blocks.added(
      own, norm2, [&](const Variable& in) { return multihead_attn(in, memory, to_memory); });
  return blocks.added(h, norm3,
                      [&](const Variable& in) { return blocks.products(in, linear1, linear2); });
}

}  // namespace catena::functions
