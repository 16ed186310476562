// Helpers of the host glue between slots and hand-written kernels.
#pragma once

#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/launch.h"
#include "backends/cuda/runtime/streams.h"
#include "catena/array/array.h"
#include "catena/kernels/slot.h"
#include "core/compute_dtype.h"

namespace catena::gpu {

// The calling thread's current stream of the array's device. Makes that device current.
inline Launch launch_for(const Array& array) {
  const int index = array.device().index();
  const DeviceInfo& info = device_info(index);
  return {launch_stream(array.device()), info.multiprocessors, index, info.early_launches};
}

// Throws DtypeError naming `who` for anything but the four floating types.
inline Float float_code(const char* who, Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16: return Float::kF16;
    case Dtype::kBFloat16: return Float::kBf16;
    case Dtype::kFloat32: return Float::kF32;
    case Dtype::kFloat64: return Float::kF64;
    default:
      fail<DtypeError>(
          who, is_float(dtype) ? ": no kernel for " : ": expected a floating dtype, got ", dtype);
  }
}

// Null counts as aligned.
template <class... Elements>
bool aligned16(const Elements*... pointers) {
  return (((reinterpret_cast<uintptr_t>(pointers) & 15) == 0) && ...);
}

// Null for an array that is left out.
inline void* data_of(const Array* array) { return array ? array->raw_data() : nullptr; }

// Memory of one call for so many numbers of the type in which x is computed.
inline Array scratch_for(const Array& x, int64_t numbers) {
  return Array::uninitialized({numbers}, compute_dtype(x.dtype()), x.device());
}

}  // namespace catena::gpu
