// Memory that the host writes before each launch of a captured graph.
#pragma once

#include "catena/array/array.h"
#include "catena/core/stream.h"

namespace catena {

// For what a launch hook (cuda::add_launch_hook) writes, of the graph that this thread captures.
// The memory of a capture is used again within it, so that recorded work writes where arrays came
// and went before. This memory is that of the device's default stream, on which a step records
// nothing as long as it does not join that stream to the capture by events.
inline Array launch_input(const Shape& shape, Dtype dtype, Device device) {
  const StreamScope scope(Stream::default_of(device));
  return Array::uninitialized(shape, dtype, device);
}

}  // namespace catena
