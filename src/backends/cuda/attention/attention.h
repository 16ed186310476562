// Attention tile by tile, forward and gradient: plain arguments of the kernels.
#pragma once

#include "backends/cuda/random/random.h"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// Queries of which the bounds of the keys are known together.
constexpr int kBoundQueries = 32;
// Columns of the heads that a kernel takes: the largest instance.
constexpr int kMostAttentionColumns = 256;

// (batch, heads, rows, columns) with unit stride along the last axis; strides in elements. Rows
// begin at multiples of 16 bytes and have a multiple of 16 bytes.
struct Heads {
  void* data;
  int64_t batch, head, row;
};

// An operand of the scores, (batch, heads, queries, keys), with stride 0 along broadcast axes.
struct ScoreOperand {
  const void* data;  // null: there is none
  int64_t batch, head, query, key;
};

// Keys that a query attends to, [begin, end); and of kBoundQueries queries: the first and the end
// of all their keys, the last begin and the first end. Where there is no table they follow from the
// numbers: query i is at i + keys - queries.
struct KeyRanges {
  const int2* of_query;  // (batch, queries), or null
  const int4* of_bound;  // (batch, queries / kBoundQueries, rounded up), or null
  const int32_t* lengths;
  int64_t window;  // 0: none
  bool causal;
};

struct AttentionArgs {
  Heads q, k, v, out;
  float* norms;  // (2, batch, heads, queries)
  ScoreOperand mask, bias;
  KeyRanges ranges;
  RandomSource random;
  int batch, heads, groups, queries, keys;
  int depth, width;  // multiples of 16 bytes
  float scale, softcap, dropout;
  float kept;      // what dropout multiplies weights by that it keeps
  bool wide_bias;  // of float, whatever q has
  bool precise;    // float32 in full, as three products of tf32
};

struct AttentionGradArgs {
  AttentionArgs forward;
  Heads gout, gq, gk, gv;
  const float* glog_sum;  // (batch, heads, queries), or null
  float* row;             // likewise: what is subtracted from the gradients of a row of weights
};

// What ranges are made from.
struct RangeArgs {
  const int32_t *lengths, *starts;                 // (batch), or null
  const int32_t *query_documents, *key_documents;  // offsets, or null
  int offsets;
  int batch, queries, keys;
  int64_t window;
  bool causal;
  int2* of_query;
  int4* of_bound;
};
void launch_attention_ranges(const RangeArgs& args, const Launch& launch);

// Bytes that a block needs; `type` is not kF64.
size_t attention_shared_memory(Float type, int columns, bool with_gradient);

// Whether the code that the device, which is current, has loaded is for GPUs with these products:
// it may be for older ones.
bool attention_has_products(int device);

void launch_attention(Float type, const AttentionArgs& args, const Launch& launch);
// Writes row, gq, gk and gv.
void launch_attention_grad(Float type, const AttentionGradArgs& args, const Launch& launch);

}  // namespace catena::gpu
