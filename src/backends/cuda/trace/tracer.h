// The part of the GPUs in traces (core/device_trace.h).
#pragma once

namespace catena::gpu {

// From now on traces have the kernels, copies and fills of GPUs, or say why they have none.
void register_tracer();

}  // namespace catena::gpu
