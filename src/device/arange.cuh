// output[i] = start + i * step. NVRTC only; the text before this file defines Output.
#pragma once

#include "device/args.h"
#include "device/prelude.cuh"

namespace catena {
namespace jit {

// Integers are computed in int64 and floats in double, as on the CPU.
CATENA_KERNEL __launch_bounds__(kMapThreads) catena_arange(const __grid_constant__ ArangeArgs a) {
  wait_for_previous_kernel();
  constexpr bool kFloating =
      IsNarrow<Output>::value || IsSame<Output, float>::value || IsSame<Output, double>::value;
  Output* output = static_cast<Output*>(a.output);
  const int64_t stride = int64_t(gridDim.x) * kMapThreads;
  for (int64_t i = int64_t(blockIdx.x) * kMapThreads + threadIdx.x; i < a.size; i += stride) {
    if constexpr (kFloating)
      output[i] = convert<Output>(a.start + double(i) * a.step);
    else
      output[i] = convert<Output>(a.integer_start + i * a.integer_step);
  }
}

}  // namespace jit
}  // namespace catena
