// CUPTI's records of what a GPU did, as spans of a trace.
//
// CUPTI's header is enough here; its library is opened by cupti.h.
#pragma once

// Old toolkits and minimal ones have no CUPTI.
#if __has_include(<cupti_activity.h>)
#include <cupti_activity.h>
#define CATENA_HAS_CUPTI 1

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catena/core/device_trace.h"

namespace catena::gpu {

// "catena::gpu::softmax_kernel<float>" from "_ZN...": without what it returns and takes, and cut if
// it is long. Other names stay as they are.
std::string readable_kernel(const char* name);

// Whether a kernel of this readable name communicates: those of NCCL and of catena's communicators.
bool is_collective(std::string_view name);

// What is kept of a trace. Not thread-safe.
class Activities {
 public:
  // Each stream keeps its last `spans_per_track`.
  explicit Activities(size_t spans_per_track) : limit_(spans_per_track) {}

  // Kernels, copies, fills, and calls by which the host asked for these; others are ignored, as are
  // records without times. Records come in any order.
  void add(const CUpti_Activity& record);
  // All spans, each with the time of its call if that was seen. Empties the object.
  tracing::DeviceActivity take();

 private:
  struct Span {
    tracing::DeviceSpan span;
    uint32_t correlation;
  };
  struct Stream {
    std::vector<Span> spans;  // a ring once it is full
    size_t oldest = 0;
    uint64_t dropped = 0;
  };
  // The device and the number of the stream.
  using Place = std::pair<uint32_t, uint32_t>;

  template <class Record>
  void keep(const Record& record, tracing::Category category, const std::string& name,
            int64_t bytes);
  void keep_kernel(const CUpti_ActivityKernel9& record);
  void keep_call(const CUpti_ActivityAPI& record);
  uint32_t name_number(const std::string& name);

  size_t limit_;
  std::map<Place, Stream> streams_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::unordered_map<std::string, std::string> kernels_;  // readable, by CUPTI's name
  std::vector<std::pair<uint32_t, int64_t>> calls_;       // correlation and begin; a ring as above
  size_t oldest_call_ = 0;
};

}  // namespace catena::gpu
#endif
