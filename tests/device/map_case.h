// One emulated element-wise program: the operands' types and the function are fixed, the launch is
// the library's own.
#pragma once

#include <cstdint>

namespace emulated {

using LaunchMap = void (*)(int kernel, uint64_t blocks, unsigned threads, void* arguments);

// out = a + b in float; out = a + b in int8; out = a in uint16; out(float64) = c ? x : y.
void add_float32(int kernel, uint64_t blocks, unsigned threads, void* arguments);
void add_int8(int kernel, uint64_t blocks, unsigned threads, void* arguments);
void copy_uint16(int kernel, uint64_t blocks, unsigned threads, void* arguments);
void where_float64(int kernel, uint64_t blocks, unsigned threads, void* arguments);
// A fused chain with two results, see emulated_fused_mixed.cpp.
void fused_mixed(int kernel, uint64_t blocks, unsigned threads, void* arguments);

}  // namespace emulated
