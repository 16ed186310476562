// Plan of a reduction: its threads, blocks and splits. Pure arithmetic, tested on the host.
#pragma once

#include <cstdint>

#include "backends/cuda/jit/host_args.h"
#include "catena/core/shape.h"

namespace catena::jit {

enum ReduceKernel : int { kReduceRows, kReduceColumns, kReduceFinish, kReduceShort };

struct ReduceShape {
  Shape shape;            // of the input
  Strides input, output;  // bytes
  uint32_t axes;          // bit k: axis k is reduced
  int input_itemsize, accumulator_bytes;
  uintptr_t address;  // of the input, for alignment
  int multiprocessors;
  bool positions = false;  // of extreme elements: splits are ranges, kReduceShort is not used
};

struct ReducePlan {
  ReduceArgs args;  // without addresses, divisor and accumulate
  ReduceKernel kernel;
  uint64_t blocks = 0;
  uint64_t partial_bytes = 0;  // workspace, when args.splits > 1
  uint64_t finish_blocks = 0;
  int32_t finish_shift = 0;
  bool fits = true;  // false: more dimensions or elements than the kernels support
};
ReducePlan plan_reduce(const ReduceShape& shape);

}  // namespace catena::jit
