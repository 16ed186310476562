// The logistic loss of a few rows of a table for each sample: plain arguments.
#pragma once

#include "backends/cuda/loss/grid_sum.h"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// Rows and signs of the leaves of a tree; t is null where rows are given.
struct PathArgs {
  const int32_t* t;
  const int32_t* begins;
  int64_t ids;
  const int32_t* paths;
  const int8_t* codes;
};

struct SampledLogisticArgs {
  const void* x;  // (batch, size)
  const void* W;  // (n, size)
  int32_t* rows;  // (batch, terms)
  int64_t batch, terms, n, size;
  void* coefficients;  // compute type, (batch, terms)
  // Forward only.
  PathArgs tree;
  void* loss;
  GridSum scratch;
  // Gradient only.
  const void* gloss;
  void* gx;      // or null
  void* values;  // or null
};

// The number of blocks of the forward kernel; one needs no scratch memory.
int sampled_logistic_blocks(const SampledLogisticArgs& args, const Launch& launch);
void launch_sampled_logistic(Float type, const SampledLogisticArgs& args, int blocks,
                             const Launch& launch);
void launch_sampled_logistic_grad(Float type, const SampledLogisticArgs& args,
                                  const Launch& launch);

}  // namespace catena::gpu
