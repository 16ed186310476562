// Where the time of training steps went, from the events of a trace.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/time_spans.h"

namespace catena::launch {

// What a trace says of one rank. All times in nanoseconds of one clock.
struct RankTimes {
  int rank = 0;
  bool dropped = false;  // its oldest events are missing
  // By thread.
  std::map<int, TimeSpans> communication, work;  // work: functions, backward and updates
  TimeSpans data;                                // waits for batches
  std::vector<std::int64_t> updates;             // their ends, each the end of a step
  TimeSpan whole;                                // from its first event to its last
};

struct RankStep {
  int rank = 0;
  TimeSpan span;
  std::int64_t communication = 0;  // in calls of communicators
  std::int64_t exposed = 0;        // of it, while no other thread of the rank worked
  std::int64_t data = 0;           // waiting for batches

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

// The steps between updates: what comes before the first update belongs to no step. Steps are
// counted from the first, or from the last when a rank has lost its oldest events.
std::vector<TrainingStep> find_steps(const std::vector<RankTimes>& ranks);

// The table that catena-run prints.
std::string describe_steps(const std::vector<RankTimes>& ranks,
                           const std::vector<TrainingStep>& steps);

}  // namespace catena::launch
