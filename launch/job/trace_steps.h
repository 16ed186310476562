// Times of training steps by what they were spent on, from the events of a trace.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/time_spans.h"

namespace catena::launch {

// What the GPUs of a rank did, by their own time.
struct DeviceTimes {
  TimeSpans kernels;      // that compute
  TimeSpans collectives;  // kernels that communicate
  // Of all that it did: when the host asked for it, and when it ended.
  struct Work {
    std::int64_t launched, end;
  };
  std::vector<Work> work;

  bool any() const { return !kernels.empty() || !collectives.empty(); }
};

// What a trace says of one rank. All times in nanoseconds of one clock.
struct RankTimes {
  int rank = 0;
  bool dropped = false;  // its oldest events are missing
  // By thread.
  std::map<int, TimeSpans> communication, work;  // work: functions, backward and updates
  std::map<int, TimeSpans> pipeline;             // the actions of a pipeline
  TimeSpans data;                                // waits for batches
  std::vector<std::int64_t> updates;             // their ends, each the end of a step
  TimeSpans marked_steps;  // that the program marked; if there are any, updates end no step
  DeviceTimes device;
  TimeSpan whole;  // from its first event to its last
};

struct RankStep {
  int rank = 0;
  TimeSpan span;
  std::int64_t communication = 0;  // collectives of the GPU; without one, calls of communicators
  std::int64_t exposed = 0;        // of it, while nothing was computed
  std::int64_t data = 0;           // waiting for batches
  std::int64_t busy = -1;          // computing for a pipeline, -1: there is none

  std::int64_t length() const { return span.end - span.begin; }
  // Outside of communication: what other ranks may wait for.
  std::int64_t own() const { return length() - communication; }
};

// One step of all ranks that made it, in the order of the ranks.
struct TrainingStep {
  int number = 0;
  std::vector<RankStep> ranks;
  int slowest = -1;  // the rank with the most time of its own; -1: there is one rank only
};

// The steps between the ends of updates, or of the steps that the program marked: what comes before
// the first end belongs to no step. A step on a GPU ends with the last work that the host had asked
// for by then. Steps are counted from the first, or from the last when a rank has lost its oldest
// events.
std::vector<TrainingStep> find_steps(const std::vector<RankTimes>& ranks);

// The table that catena-run prints.
std::string describe_steps(const std::vector<RankTimes>& ranks,
                           const std::vector<TrainingStep>& steps);

}  // namespace catena::launch
