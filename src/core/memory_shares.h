// What a picture shows of a timeline: some callers by name and the others together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/memory_timeline.h"

namespace catena {

struct MemoryShares {
  // What is drawn as one area.
  struct Share {
    std::string name;
    int64_t at_peak = 0;  // bytes
    size_t others = 0;    // callers that are together here; 0: one, by its name
  };
  // Bytes by share from a time on.
  struct Moment {
    int64_t ns;
    std::vector<int64_t> held;
  };

  int64_t peak = 0, peak_ns = 0;
  std::vector<Share> shares;    // what held most at the peak first, the others last
  std::vector<size_t> stacked;  // numbers of shares by their first allocation, the others last
  std::vector<Moment> moments;
};

// The first `levels` names of a path of calls; all for 0.
std::string outermost(const std::string& path, int levels);

// Paths by the callers' numbers; `bucket_ns` is as fine as times are wanted.
MemoryShares shares_of(const MemoryTimeline& timeline, const std::vector<std::string>& paths,
                       int levels, int most, int64_t bucket_ns);

}  // namespace catena
