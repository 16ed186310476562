// Process-wide settings with their environment variables.
#pragma once

#include <cstddef>

#include "catena/core/dtype.h"

namespace catena {

enum class Precision : uint8_t { kFloat32, kTf32, kBf16 };
// Whether cuDNN's kernels are used where a cudnn plug-in is there: kAuto where they are expected to
// be faster. This version has no such plug-in, so no function reads the setting yet.
enum class UseCudnn : uint8_t { kNever, kAuto, kAlways };

struct Config {
  Dtype default_dtype = Dtype::kFloat64;             // of creation routines, as NumPy
  Precision matmul_precision = Precision::kFloat32;  // CATENA_MATMUL_PRECISION=float32|tf32|bf16
  bool deterministic = false;            // CATENA_DETERMINISTIC=1: no atomics, fixed algorithms
  UseCudnn use_cudnn = UseCudnn::kAuto;  // CATENA_CUDNN=never|auto|always, or 0 for never
  // Bytes of scratch memory that one call of a cudnn plug-in may take; no function reads it yet.
  size_t max_workspace_size = size_t{8} << 20;
  bool type_check = true;  // CATENA_TYPE_CHECK=0 turns Function type checks off
};

// The settings of the process; change them before work starts, not while other threads compute.
Config& config();

// Worker threads a CPU operation may use: OMP_NUM_THREADS if the user set it, else
// max(1, cores of this process / ranks on the host). Shared by our loops and BLAS.
int cpu_threads();
void set_cpu_threads(int count);

}  // namespace catena
