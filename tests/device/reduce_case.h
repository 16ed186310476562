// Emulated reductions: types and operation fixed, arguments as the library fills them.
#pragma once

#include <cstdint>

namespace emulated {

using LaunchReduce = void (*)(int kernel, uint64_t blocks, unsigned splits, void* arguments);

// float -> float; int8 -> int64; maximum of int16; positions of extreme floats (kernels 0 and 1).
void sum_float32(int kernel, uint64_t blocks, unsigned splits, void* arguments);
void sum_int8(int kernel, uint64_t blocks, unsigned splits, void* arguments);
void max_int16(int kernel, uint64_t blocks, unsigned splits, void* arguments);
void arg_float32(int kernel, uint64_t blocks, unsigned splits, void* arguments);

}  // namespace emulated
