// Running sums and products: plain arguments. catena/kernels/scan.h defines the results.
#pragma once

#include "backends/cuda/runtime/element.h"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

struct ScanArgs {
  const void* input;
  void* output;
  int64_t outer, count, inner;  // along the middle axis of (outer, count, inner)
  Element type;  // of the input, and of the output, which has 64 bits if they are integers or bool
  void* scratch;
  size_t scratch_bytes;
};

// One line (outer = inner = 1) by CUB, whose blocks look back at the blocks before them, so that
// elements are read once. The order in which floats are added may differ from run to run.
size_t line_scan_scratch_bytes(bool product, Element type, int64_t count);
cudaError_t launch_line_scan(bool product, const ScanArgs& args, const Launch& launch);

// A block for each line (inner = 1) or strip of columns, or a thread for each column; always in the
// same order.
void launch_scan(bool product, const ScanArgs& args, const Launch& launch);

}  // namespace catena::gpu
