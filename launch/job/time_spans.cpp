#include "job/time_spans.h"

#include <algorithm>

namespace catena::launch {

TimeSpans unite(TimeSpans spans) {
  std::erase_if(spans, [](const TimeSpan& span) { return span.end <= span.begin; });
  std::sort(spans.begin(), spans.end(),
            [](const TimeSpan& a, const TimeSpan& b) { return a.begin < b.begin; });
  TimeSpans united;
  for (const TimeSpan& span : spans) {
    if (!united.empty() && span.begin <= united.back().end)
      united.back().end = std::max(united.back().end, span.end);
    else
      united.push_back(span);
  }
  return united;
}

TimeSpans subtract(const TimeSpans& from, const TimeSpans& what) {
  TimeSpans rest;
  std::size_t first = 0;  // of `what` that may reach into the present span or later ones
  for (const TimeSpan& span : from) {
    std::int64_t begin = span.begin;
    while (first < what.size() && what[first].end <= begin) ++first;
    for (std::size_t i = first; i < what.size() && what[i].begin < span.end; ++i) {
      if (what[i].begin > begin) rest.push_back({begin, what[i].begin});
      begin = std::max(begin, what[i].end);
    }
    if (begin < span.end) rest.push_back({begin, span.end});
  }
  return rest;
}

std::int64_t length_within(const TimeSpans& spans, TimeSpan limits) {
  std::int64_t length = 0;
  auto span =
      std::lower_bound(spans.begin(), spans.end(), limits.begin,
                       [](const TimeSpan& each, std::int64_t begin) { return each.end <= begin; });
  for (; span != spans.end() && span->begin < limits.end; ++span)
    length += std::min(span->end, limits.end) - std::max(span->begin, limits.begin);
  return length;
}

}  // namespace catena::launch
