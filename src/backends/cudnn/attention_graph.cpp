#include "backends/cudnn/attention_graph.h"

#include <optional>
#include <vector>

namespace catena::cudnn {
namespace {

using Four = std::array<int64_t, 4>;

Four packed(const Four& extents) {
  return {extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3], 1};
}

// A tensor of the graph; its descriptor belongs to the builder.
struct Tensor {
  cudnnBackendDescriptor_t native;
  Four extents;
};

// How many rows, columns and terms of a product count, for each sequence; null: all.
struct Counts {
  const Tensor *rows = nullptr, *columns = nullptr, *terms = nullptr;
};

// Builds a graph operation by operation.
class Builder {
 public:
  explicit Builder(Dtype dtype) : type_(data_type(dtype)) {}

  // Of the call's dtype, in memory.
  Tensor heads(int64_t id, const Four& extents, const HeadStrides& s) {
    return add(id, type_, extents, {s.batch, s.head, s.row, 1});
  }
  // The same with rows and columns exchanged.
  Tensor transposed_heads(int64_t id, const Four& e, const HeadStrides& s) {
    return add(id, type_, {e[0], e[1], e[3], e[2]}, {s.batch, s.head, 1, s.row});
  }
  Tensor floats(int64_t id, const Four& extents) {
    return add(id, CUDNN_DATA_FLOAT, extents, packed(extents));
  }
  // A number of each sequence.
  Tensor lengths(int64_t id, int64_t batch) {
    return add(id, CUDNN_DATA_INT32, {batch, 1, 1, 1}, {1, 1, 1, 1});
  }
  Tensor scalar(int64_t id) { return add(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}); }

  void pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* b, const Tensor& y) {
    operate(mode, CUDNN_DATA_FLOAT, x, b, nullptr, y, {});
  }
  Tensor pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* b = nullptr) {
    const Tensor y = inner(CUDNN_DATA_FLOAT, x.extents);
    pointwise(mode, x, b, y);
    return y;
  }

  // Scores that a causal query may not attend to become `forbidden`.
  Tensor without_later_keys(const Tensor& scores, const Tensor& forbidden) {
    const Tensor row = index(scores, 2), column = index(scores, 3);
    return select(truth(CUDNN_POINTWISE_CMP_GE, row, column), scores, forbidden);
  }
  // The same for scores behind the last query or key of a sequence.
  Tensor within(const Tensor& scores, const Tensor& queries, const Tensor& keys,
                const Tensor& forbidden) {
    const Tensor row = truth(CUDNN_POINTWISE_CMP_LT, index(scores, 2), queries),
                 column = truth(CUDNN_POINTWISE_CMP_LT, index(scores, 3), keys);
    return select(truth(CUDNN_POINTWISE_LOGICAL_AND, row, column), scores, forbidden);
  }

  void reduce(cudnnReduceTensorOp_t how, const Tensor& x, const Tensor& y) {
    Descriptor d(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    d.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
    d.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    d.finalize();
    Descriptor o(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    refer(o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    refer(o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    o.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, d);
    finish(o);
    graph_.parts.push_back(std::move(d));
  }
  // Over the columns.
  Tensor reduce_columns(cudnnReduceTensorOp_t how, const Tensor& x) {
    const Tensor y = inner(CUDNN_DATA_FLOAT, {x.extents[0], x.extents[1], x.extents[2], 1});
    reduce(how, x, y);
    return y;
  }

  void multiply(const Tensor& a, const Tensor& b, const Tensor& c, const Counts& counts) {
    Descriptor d(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    d.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    d.finalize();
    Descriptor o(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    refer(o, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    refer(o, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    refer(o, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    if (counts.rows) refer(o, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, *counts.rows);
    if (counts.columns) refer(o, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, *counts.columns);
    if (counts.terms) refer(o, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, *counts.terms);
    o.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, d);
    finish(o);
    graph_.parts.push_back(std::move(d));
  }
  Tensor multiply(const Tensor& a, const Tensor& b, const Counts& counts = {}) {
    const Tensor c =
        inner(CUDNN_DATA_FLOAT, {a.extents[0], a.extents[1], a.extents[2], b.extents[3]});
    multiply(a, b, c, counts);
    return c;
  }

  // Rows as columns: another view of x, rounded to the call's dtype.
  Tensor transposed(const Tensor& x) {
    const Four& e = x.extents;
    const Four s = packed(e);
    return reshaped(x, add(next_++, type_, {e[0], e[1], e[3], e[2]}, {s[0], s[1], s[3], s[2]}));
  }
  // The keys, given as transposed_heads, as they are in memory.
  Tensor rows_of(const Tensor& keys, const HeadStrides& s) {
    const Four& e = keys.extents;
    return reshaped(keys, add(next_++, CUDNN_DATA_FLOAT, {e[0], e[1], e[3], e[2]},
                              {s.batch, s.head, s.row, 1}));
  }

  // A tensor between operations.
  Tensor inner(cudnnDataType_t type, const Four& extents) {
    return add(next_++, type, extents, packed(extents));
  }
  Tensor inner_of_dtype(const Four& extents) { return inner(type_, extents); }

  Graph whole(cudnnHandle_t handle) {
    graph_.whole = Descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph_.whole.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                     static_cast<int64_t>(operations_.size()), operations_.data());
    graph_.whole.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    graph_.whole.finalize();
    return std::move(graph_);
  }

 private:
  static constexpr int64_t kAlignment = 16;

  Tensor add(int64_t id, cudnnDataType_t type, const Four& extents, const Four& strides) {
    const bool is_inner = id >= kFirstInner;
    const bool is_value = id == kScale || id == kForbidden || id == kOne;
    Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents);
    t.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
    t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
    t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_inner);
    t.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &is_value);
    t.finalize();
    const Tensor made{t.native(), extents};
    graph_.parts.push_back(std::move(t));
    return made;
  }

  // The number of each element's row (axis 2) or column (axis 3).
  Tensor index(const Tensor& scores, int64_t axis) {
    const Tensor y = inner(CUDNN_DATA_INT32, scores.extents);
    operate(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, scores, nullptr, nullptr, y, axis);
    return y;
  }
  // Extents are those of a.
  Tensor truth(cudnnPointwiseMode_t mode, const Tensor& a, const Tensor& b) {
    const Tensor y = inner(CUDNN_DATA_BOOLEAN, a.extents);
    operate(mode, CUDNN_DATA_BOOLEAN, a, &b, nullptr, y, {});
    return y;
  }
  Tensor select(const Tensor& condition, const Tensor& scores, const Tensor& otherwise) {
    const Tensor y = inner(CUDNN_DATA_FLOAT, scores.extents);
    operate(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, scores, &otherwise, &condition, y, {});
    return y;
  }

  void operate(cudnnPointwiseMode_t mode, cudnnDataType_t precision, const Tensor& x,
               const Tensor* b, const Tensor* t, const Tensor& y, std::optional<int64_t> axis) {
    Descriptor d(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    d.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    d.set(CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
    if (axis) d.set(CUDNN_ATTR_POINTWISE_AXIS, *axis);
    d.finalize();
    Descriptor o(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, d);
    refer(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != nullptr) refer(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    if (t != nullptr) refer(o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *t);
    refer(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    finish(o);
    graph_.parts.push_back(std::move(d));
  }

  Tensor reshaped(const Tensor& x, const Tensor& y) {
    Descriptor o(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    refer(o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    refer(o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    finish(o);
    return y;
  }

  static void refer(Descriptor& operation, cudnnBackendAttributeName_t name, const Tensor& t) {
    operation.set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &t.native);
  }
  void finish(Descriptor& operation) {
    operation.finalize();
    operations_.push_back(operation.native());
    graph_.parts.push_back(std::move(operation));
  }

  cudnnDataType_t type_;
  int64_t next_ = kFirstInner;
  Graph graph_;
  std::vector<cudnnBackendDescriptor_t> operations_;
};

Four q_extents(const AttentionShape& s) { return {s.batch, s.heads, s.queries, s.depth}; }
Four k_extents(const AttentionShape& s) { return {s.batch, s.groups, s.keys, s.depth}; }
Four v_extents(const AttentionShape& s) { return {s.batch, s.groups, s.keys, s.width}; }
Four out_extents(const AttentionShape& s) { return {s.batch, s.heads, s.queries, s.width}; }
Four row_extents(const AttentionShape& s) { return {s.batch, s.heads, s.queries, 1}; }

}  // namespace

Graph attention_graph(const AttentionShape& s, cudnnHandle_t handle) {
  Builder g(s.dtype);
  const Tensor q = g.heads(kQuery, q_extents(s), s.q);
  const Tensor k = g.transposed_heads(kKey, k_extents(s), s.k);
  const Tensor v = g.heads(kValue, v_extents(s), s.v);
  const Tensor scale = g.scalar(kScale);
  Tensor scores = g.pointwise(CUDNN_POINTWISE_MUL, g.multiply(q, k), &scale);
  if (s.causal) scores = g.without_later_keys(scores, g.scalar(kForbidden));
  const Tensor largest = g.reduce_columns(CUDNN_REDUCE_TENSOR_MAX, scores);
  const Tensor below = g.pointwise(CUDNN_POINTWISE_SUB, scores, &largest);
  const Tensor exponentials = g.pointwise(CUDNN_POINTWISE_EXP, below);
  const Tensor sum = g.reduce_columns(CUDNN_REDUCE_TENSOR_ADD, exponentials);
  const Tensor log_sum = g.pointwise(CUDNN_POINTWISE_LOG, sum);
  g.pointwise(CUDNN_POINTWISE_ADD, largest, &log_sum, g.floats(kLogSum, row_extents(s)));
  const Tensor weights = g.inner_of_dtype(scores.extents);
  g.pointwise(CUDNN_POINTWISE_DIV, exponentials, &sum, weights);
  g.multiply(weights, v, g.heads(kOut, out_extents(s), s.out), {});
  return g.whole(handle);
}

namespace {

// gradient = a b, summed over the heads of a group where several share one.
void multiply_for_group(Builder& g, const AttentionShape& s, const Tensor& a, const Tensor& b,
                        const Tensor& gradient, const Counts& counts) {
  if (s.heads == s.groups) {
    g.multiply(a, b, gradient, counts);
  } else {
    const Tensor all = g.inner_of_dtype({s.batch, s.heads, s.keys, gradient.extents[3]});
    g.multiply(a, b, all, counts);
    g.reduce(CUDNN_REDUCE_TENSOR_ADD, all, gradient);
  }
}

struct Lengths {
  Tensor queries, keys;
};
std::optional<Lengths> lengths_of(Builder& g, const AttentionShape& s) {
  if (!s.bounded) return {};
  return Lengths{g.lengths(kQueryLengths, s.batch), g.lengths(kKeyLengths, s.batch)};
}

}  // namespace

Graph attention_grad_graph(const AttentionShape& s, cudnnHandle_t handle) {
  Builder g(s.dtype);
  const Tensor q = g.heads(kQuery, q_extents(s), s.q);
  const Tensor k = g.transposed_heads(kKey, k_extents(s), s.k);
  const Tensor v = g.transposed_heads(kValue, v_extents(s), s.v);
  const Tensor out = g.heads(kOut, out_extents(s), s.out);
  const Tensor gout = g.heads(kGradOut, out_extents(s), s.gout);
  const Tensor scale = g.scalar(kScale), one = g.scalar(kOne);
  // What is subtracted from the gradients of a row of weights.
  const Tensor row_sum = g.floats(kRowSum, row_extents(s));
  const Tensor products = g.pointwise(CUDNN_POINTWISE_MUL, gout, &out);
  g.pointwise(CUDNN_POINTWISE_MUL, g.reduce_columns(CUDNN_REDUCE_TENSOR_ADD, products), &one,
              row_sum);
  // The weights, from their logarithms.
  const Tensor log_sum = g.floats(kLogSum, row_extents(s));
  const std::optional<Lengths> lengths = lengths_of(g, s);
  const Tensor* const queries = lengths ? &lengths->queries : nullptr;
  const Tensor* const keys = lengths ? &lengths->keys : nullptr;
  const Tensor forbidden = g.scalar(kForbidden);
  Tensor scores = g.pointwise(CUDNN_POINTWISE_MUL, g.multiply(q, k, {queries, keys}), &scale);
  if (lengths) scores = g.within(scores, *queries, *keys, forbidden);
  Tensor logarithms = g.pointwise(CUDNN_POINTWISE_SUB, scores, &log_sum);
  if (s.causal) logarithms = g.without_later_keys(logarithms, forbidden);
  const Tensor weights = g.pointwise(CUDNN_POINTWISE_EXP, logarithms);
  const Counts of_keys = {.rows = keys, .terms = queries};
  multiply_for_group(g, s, g.transposed(weights), gout, g.heads(kGradValue, v_extents(s), s.gv),
                     of_keys);
  // The gradients of q k^T.
  const Tensor of_weights = g.multiply(gout, v, {queries, keys});
  const Tensor centered = g.pointwise(CUDNN_POINTWISE_SUB, of_weights, &row_sum);
  const Tensor of_scores = g.pointwise(CUDNN_POINTWISE_MUL, centered, &weights);
  const Tensor of_products = g.pointwise(CUDNN_POINTWISE_MUL, of_scores, &scale);
  multiply_for_group(g, s, g.transposed(of_products), q, g.heads(kGradKey, k_extents(s), s.gk),
                     of_keys);
  const Tensor gq = g.heads(kGradQuery, q_extents(s), s.gq);
  const Counts of_queries = {.rows = queries, .terms = keys};
  if (s.ordered) {
    g.multiply(of_products, g.rows_of(k, s.k), gq, of_queries);
    return g.whole(handle);
  }
  // Sums in memory are how cuDNN is told to add up while blocks end.
  const Tensor sum = g.floats(kGradQuerySum, q_extents(s));
  g.multiply(of_products, g.rows_of(k, s.k), sum, of_queries);
  g.pointwise(CUDNN_POINTWISE_IDENTITY, sum, nullptr, gq);
  return g.whole(handle);
}

}  // namespace catena::cudnn
