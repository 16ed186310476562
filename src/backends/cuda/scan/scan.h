// Running sums and products: plain arguments. catena/kernels/scan.h defines the results.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// Types of the input and the output. kI64: signed and unsigned. kNarrow: the input is bool or a
// narrower integer (see Narrower), the output has 64 bits.
enum class ScanType : uint8_t { kF16, kBf16, kF32, kF64, kI64, kNarrow };
enum class Narrower : uint8_t { kBool, kI8, kU8, kI16, kU16, kI32, kU32 };

struct ScanArgs {
  const void* input;
  void* output;
  int64_t outer, count, inner;  // along the middle axis of (outer, count, inner)
  Narrower narrower;
  void* scratch;
  size_t scratch_bytes;
};

// One line (outer = inner = 1) by CUB, whose blocks look back at the blocks before them, so that
// elements are read once. The order in which floats are added may differ from run to run.
size_t line_scan_scratch_bytes(bool product, ScanType type, int64_t count);
cudaError_t launch_line_scan(bool product, ScanType type, const ScanArgs& args,
                             const Launch& launch);

// A block for each line (inner = 1) or strip of columns, or a thread for each column; always in the
// same order.
void launch_scan(bool product, ScanType type, const ScanArgs& args, const Launch& launch);

}  // namespace catena::gpu
