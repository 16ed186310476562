// Sets of moments, as sorted spans that do not touch.
#pragma once

#include <cstdint>
#include <vector>

namespace catena::launch {

struct TimeSpan {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const TimeSpan&) const = default;
};
using TimeSpans = std::vector<TimeSpan>;

// The union of any spans; empty ones do not count.
TimeSpans unite(TimeSpans spans);
// What is in `from` and not in `what`. Both are unions.
TimeSpans subtract(const TimeSpans& from, const TimeSpans& what);
// How much of the union lies within the span.
std::int64_t length_within(const TimeSpans& spans, TimeSpan limits);

}  // namespace catena::launch
