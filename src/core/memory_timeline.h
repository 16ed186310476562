// What the callers of a memory profile held on one device, over time, within a budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace catena {

// A list of changes. When it is full, it is thinned out by buckets of time: of each bucket two
// moments remain, the one at which most was held in all and the last one, with what every caller
// held then. So no peak is lost, and who held it; what is lost are the lows within a bucket.
class MemoryTimeline {
 public:
  static constexpr size_t kMostChanges = size_t{1} << 18;

  // Of what a caller holds. Those of equal times are one moment: what is held is known after the
  // last of them.
  struct Change {
    int64_t ns, bytes;
    uint32_t caller;
  };

  // Callers have numbers from 0. Earlier times, and equal ones, become the next nanosecond.
  void add(int64_t ns, uint32_t caller, int64_t bytes);
  // Thins out by buckets of `width` ns.
  void merge(int64_t width);

  const std::vector<Change>& changes() const { return changes_; }
  // Of the buckets, in ns; 0: nothing was lost.
  int64_t bucket_width() const { return width_; }

 private:
  void thin_out();

  std::vector<Change> changes_;
  // More where the callers are so many that two moments do not fit.
  size_t most_ = kMostChanges;
  int64_t width_ = 0;
};

}  // namespace catena
