// The picture of what callers held on devices over time; see MemoryProfile::write_svg.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catena/core/memory_profile.h"
#include "core/memory_timeline.h"

namespace catena {

struct DeviceMemory {
  Device device;
  MemoryTimeline timeline;
};

// Paths by the callers' numbers. Times are 0 to `end_ns`.
std::string draw_memory(const std::vector<std::string>& paths,
                        const std::vector<DeviceMemory>& devices, int64_t end_ns,
                        const MemoryPictureOptions& options);

}  // namespace catena
