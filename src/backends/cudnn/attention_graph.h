// Operation graphs of attention and its gradient, in the form that cuDNN fuses into one kernel.
#pragma once

#include <array>
#include <cstdint>

#include "backends/cudnn/plan_request.h"
#include "catena/core/dtype.h"

namespace catena::cudnn {

// Ids of the tensors of a call.
enum AttentionTensor : int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOut,
  kLogSum,     // float32 (batch, heads, queries, 1), packed: logarithms of sums of exponentials
  kScale,      // float32, by value
  kForbidden,  // float32, by value: the score of a key that a query may not attend to
  kGradOut,
  kGradQuery,
  kGradKey,
  kGradValue,
  kOne,           // float32, by value
  kRowSum,        // float32 scratch like kLogSum
  kGradQuerySum,  // float32 scratch (batch, heads, queries, depth), packed, unless `ordered`
  kQueryLengths,  // int32 (batch, 1, 1, 1), packed: queries of each sequence, with `bounded` only
  kKeyLengths,    // the same of keys
  kFirstInner,    // of the tensors between operations, which are not in memory
};

// Strides of (batch, heads, rows, columns) in elements; that of columns is 1.
struct HeadStrides {
  int64_t batch, head, row;
};

// Everything that decides about the graphs. Heads is a multiple of groups.
struct AttentionShape {
  Dtype dtype;
  int64_t batch, heads, groups, queries, keys, depth, width;
  bool causal;  // query i attends to keys j <= i
  HeadStrides q, k, v, out;
  HeadStrides gout = {}, gq = {}, gk = {}, gv = {};  // of the gradient only
  bool bounded = false;  // of the gradient only: it reads the lengths of sequences from memory
  // Of the gradient only: the gradients of all scores, of 16 bits, lie in the plan's workspace, and
  // those of queries are their product with the keys, in an order that is always the same.
  bool ordered = false;
};

// Both throw NotSupported if cuDNN does not take the graph.
Graph attention_graph(const AttentionShape& shape, cudnnHandle_t handle);
Graph attention_grad_graph(const AttentionShape& shape, cudnnHandle_t handle);

}  // namespace catena::cudnn
