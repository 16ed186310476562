#include "catena/functions/attention/multi_head_attention.h"

#include "catena/functions/array/get_item.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/split_axis.h"
#include "catena/functions/array/transpose.h"
#include "functions/attention/positions.h"

namespace catena::functions {
namespace {

constexpr const char* kName = "MultiHeadAttention";

int64_t depth_of(int64_t size, int64_t heads) {
  CATENA_CHECK(ValueError, size > 0 && heads > 0 && size % heads == 0, kName,
               ": expected heads that divide the size, got ", heads, " heads of ", size);
  return size / heads;
}

int64_t groups_of(int64_t heads, const MultiHeadAttentionOptions& o) {
  const int64_t groups = o.groups.value_or(heads);
  CATENA_CHECK(ValueError, groups > 0 && heads % groups == 0, kName,
               ": expected groups that divide the ", heads, " heads, got ", groups);
  CATENA_CHECK(ValueError, o.dropout >= 0 && o.dropout < 1, kName,
               ": expected a dropout of [0, 1), got ", o.dropout);
  return groups;
}

std::optional<RotaryOptions> rotary_of(int64_t depth, const MultiHeadAttentionOptions& o) {
  if (!o.rotary) return {};
  CATENA_CHECK(ValueError, !o.rotary->positions, kName,
               ": the rotary options have positions; the layer counts them itself, from `start`");
  rotary_frequencies(depth, *o.rotary);  // throws
  return o.rotary;
}

LinearOptions projection(const MultiHeadAttentionOptions& o) {
  CATENA_CHECK(ValueError, !o.initialW.array() && !o.initial_bias.array(), kName,
               ": a start value is an array, but the projections have different shapes; give an "
               "initializer, or assign to in_proj_W and the parameters of out_proj");
  return {
      .nobias = o.nobias, .initialW = o.initialW, .initial_bias = o.initial_bias, .dtype = o.dtype};
}

// (batch, positions, heads * depth) as (batch, heads, positions, depth), a view.
Variable in_heads(const Variable& x, int64_t heads) {
  const Shape& shape = x.shape();
  return transpose(reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t size, int64_t heads,
                                       const MultiHeadAttentionOptions& o)
    : out_proj(depth_of(size, heads) * heads, size, projection(o)),
      heads_(heads),
      groups_(groups_of(heads, o)),
      rotary_(rotary_of(depth_of(size, heads), o)),
      dropout_(o.dropout) {
  Linear in_proj(size, size + 2 * groups_ * depth_of(size, heads), projection(o));
  in_proj_W = std::move(in_proj.W);
  if (!o.nobias) in_proj_b = std::move(in_proj.b);
}

MultiHeadAttention::Heads MultiHeadAttention::heads_of(const Variable& x) const {
  check_positions(kName, "x", x, size());
  const Variable all = in_proj_b ? linear(x, in_proj_W, *in_proj_b) : linear(x, in_proj_W);
  const int64_t of_keys = depth() * groups_;
  const Variables parts = split_axis(all, {size(), size() + of_keys}, 2);
  return {in_heads(parts[0], heads_), in_heads(parts[1], groups_), in_heads(parts[2], groups_)};
}

void MultiHeadAttention::turn(Heads& heads, const std::optional<Array>& positions) const {
  if (!rotary_) return;
  RotaryOptions options = *rotary_;
  options.positions = positions;
  heads.q = rotary_embedding(heads.q, options);
  heads.k = rotary_embedding(heads.k, options);
}

AttentionOptions MultiHeadAttention::in_state(const AttentionOptions& given) const {
  AttentionOptions options = given;
  if (options.dropout == 0 && training()) options.dropout = dropout_;
  return options;
}

Variable MultiHeadAttention::projected(const Variable& y) const {
  return out_proj(reshape(transpose(y, {0, 2, 1, 3}), {y.shape()[0], y.shape()[2], size()}));
}

Variable MultiHeadAttention::operator()(const VariableOperand& x,
                                        const AttentionOptions& options) const {
  Heads heads = heads_of(x.variable(kName));
  turn(heads, {});
  return projected(scaled_dot_product_attention(heads.q, heads.k, heads.v, in_state(options)));
}

Variable MultiHeadAttention::operator()(const VariableOperand& x, const LayerCache& cache,
                                        const AttentionOptions& options) const {
  Heads heads = heads_of(x.variable(kName));
  cache.check(heads.q, heads.k, heads.v, options);
  turn(heads, cache.positions());
  return projected(cache.attend(heads.q, heads.k, heads.v, in_state(options)));
}

Variable MultiHeadAttention::operator()(const VariableOperand& x, const VariableOperand& memory,
                                        const AttentionOptions& options) const {
  return (*this)(x, keys_of(memory), options);
}

Variable MultiHeadAttention::part_of_projection(const Variable& x, const Slice& rows) const {
  const Variable W = get_item(in_proj_W, {rows});
  return in_proj_b ? linear(x, W, get_item(*in_proj_b, {rows})) : linear(x, W);
}

MemoryKeys MultiHeadAttention::keys_of(const VariableOperand& operand) const {
  const Variable& memory = operand.variable(kName);
  check_positions(kName, "memory", memory, size());
  CATENA_CHECK(ValueError, !rotary_, kName,
               ": rotary positions are of attention to x itself; make a layer without them");
  const Variables kv = split_axis(part_of_projection(memory, Slice(size(), none)), 2, 2);
  return {in_heads(kv[0], groups_), in_heads(kv[1], groups_)};
}

Variable MultiHeadAttention::operator()(const VariableOperand& operand, const MemoryKeys& memory,
                                        const AttentionOptions& options) const {
  const Variable& x = operand.variable(kName);
  check_positions(kName, "x", x, size());
  CATENA_CHECK(ShapeError, memory.k.shape()[0] == x.shape()[0], kName, ": x has a batch of ",
               x.shape()[0], ", memory one of ", memory.k.shape()[0]);
  const Variable q = part_of_projection(x, Slice(0, size()));
  return projected(
      scaled_dot_product_attention(in_heads(q, heads_), memory.k, memory.v, in_state(options)));
}

}  // namespace catena::functions
