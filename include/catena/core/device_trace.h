// Time lines of streams that devices add to a trace (core/trace.h). For plug-ins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "catena/core/trace.h"

namespace catena::tracing {

// Something that a device did. Times are nanoseconds of CLOCK_MONOTONIC.
struct DeviceSpan {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t launched = 0;  // when the host asked for it, 0: not known
  int64_t bytes = -1;    // moved; -1: none
  uint32_t name = 0;     // a number into DeviceActivity::names
  Category category = Category::kKernel;
  bool in_graph = false;  // part of a replayed graph
};

// One stream.
struct DeviceTrack {
  std::string name;  // "cuda:0 stream 13"
  std::vector<DeviceSpan> spans;
  uint64_t dropped = 0;  // older ones that did not fit
};

// All that the devices of one kind add to a trace.
struct DeviceActivity {
  std::vector<DeviceTrack> tracks;  // one a stream; a second one for spans that overlap
  std::vector<std::string> names;   // of kernels and calls, see DeviceSpan::name
  std::string problem;              // why something is missing, "" when nothing is
};

// Watches devices while a trace is being recorded. Calls come one at a time, start and finish in
// turn.
class DeviceTracer {
 public:
  DeviceTracer() = default;
  DeviceTracer(const DeviceTracer&) = delete;
  DeviceTracer& operator=(const DeviceTracer&) = delete;
  virtual ~DeviceTracer() = default;
  // Each track keeps its last `spans_per_track`. What goes wrong is said in finish().
  virtual void start(size_t spans_per_track) noexcept = 0;
  // What has been seen since start(). It may wait for work of devices: some seconds if `patient`,
  // else a second at most, as the process is being ended.
  virtual DeviceActivity finish(bool patient) noexcept = 0;
};

// From now on the tracer takes part in traces, also in one that is being recorded. It lives as long
// as the process. Thread-safe.
void add_device_tracer(DeviceTracer& tracer);

}  // namespace catena::tracing
