#include "job/trace_steps.h"

#include <algorithm>
#include <cstdio>

namespace catena::launch {
namespace {

TimeSpans of_all_threads(const std::map<int, TimeSpans>& threads) {
  TimeSpans all;
  for (const auto& [thread, spans] : threads) all.insert(all.end(), spans.begin(), spans.end());
  return unite(std::move(all));
}

// What each thread did of `what`, without its calls of communicators: a backward that waits in a
// collective does not work meanwhile.
TimeSpans without_communication(const std::map<int, TimeSpans>& what, const RankTimes& times) {
  TimeSpans all;
  for (const auto& [thread, spans] : what) {
    const auto calls = times.communication.find(thread);
    const TimeSpans waits = calls == times.communication.end() ? TimeSpans() : unite(calls->second);
    for (const TimeSpan& span : subtract(unite(spans), waits)) all.push_back(span);
  }
  return unite(std::move(all));
}

// One rank's times as unions.
struct UnitedTimes {
  TimeSpans communication, exposed, data, busy;
  bool in_pipeline;

  explicit UnitedTimes(const RankTimes& times)
      : data(unite(times.data)), in_pipeline(!times.pipeline.empty()) {
    const bool on_device = times.device.any();
    communication =
        on_device ? unite(times.device.collectives) : of_all_threads(times.communication);
    const TimeSpans kernels = unite(times.device.kernels);
    exposed =
        subtract(communication, on_device ? kernels : without_communication(times.work, times));
    if (in_pipeline) busy = on_device ? kernels : without_communication(times.pipeline, times);
  }

  // `host`: the same step by the time of the host, which waits for batches.
  RankStep within(int rank, TimeSpan span, TimeSpan host) const {
    return {rank,
            span,
            length_within(communication, span),
            length_within(exposed, span),
            length_within(data, host),
            in_pipeline ? length_within(busy, span) : -1};
  }
};

// A step that the program marked may have others inside of it.
std::vector<std::int64_t> ends_of_outermost(TimeSpans spans) {
  std::sort(spans.begin(), spans.end(), [](const TimeSpan& a, const TimeSpan& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<std::int64_t> ends;
  for (const TimeSpan& span : spans)
    if (ends.empty() || span.begin >= ends.back()) ends.push_back(span.end);
  return ends;
}

std::vector<std::int64_t> ends_on_host(const RankTimes& times) {
  return times.marked_steps.empty() ? times.updates : ends_of_outermost(times.marked_steps);
}

// The host runs ahead of the GPU, by whole steps where these are replays of a graph.
std::vector<std::int64_t> ends_on_device(const RankTimes& times,
                                         const std::vector<std::int64_t>& on_host) {
  if (times.device.work.empty()) return on_host;
  std::vector<DeviceTimes::Work> work = times.device.work;
  std::sort(work.begin(), work.end(),
            [](const auto& a, const auto& b) { return a.launched < b.launched; });
  std::vector<std::int64_t> ends;
  auto next = work.begin();
  std::int64_t last = on_host.empty() ? 0 : std::min(on_host.front(), work.front().end);
  for (const std::int64_t end : on_host) {
    for (; next != work.end() && next->launched <= end; ++next) last = std::max(last, next->end);
    ends.push_back(last);
  }
  return ends;
}

void find_slowest(TrainingStep& step) {
  if (step.ranks.size() < 2) return;
  step.slowest =
      std::max_element(step.ranks.begin(), step.ranks.end(),
                       [](const RankStep& a, const RankStep& b) { return a.own() < b.own(); })
          ->rank;
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100.0 * double(part) / double(whole) : 0;
}

std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One line of the table.
struct RankTotals {
  std::vector<std::int64_t> lengths;
  std::int64_t whole = 0, exposed = 0, data = 0, busy = -1;
  std::size_t slowest = 0;

  void add(const RankStep& step) {
    lengths.push_back(step.length());
    whole += step.length();
    exposed += step.exposed;
    data += step.data;
    if (step.busy >= 0) busy = std::max<std::int64_t>(busy, 0) + step.busy;
  }
};

// Which columns the table has.
struct Columns {
  bool bubble = false, slowest = false;
};

std::string line_of(int rank, const RankTotals& totals, std::size_t steps, Columns columns) {
  char text[160];
  std::snprintf(text, sizeof text, "%6d  %9.3f ms  %20.1f %%", rank,
                double(median(totals.lengths)) * 1e-6, share(totals.exposed, totals.whole));
  std::string line = text;
  if (columns.bubble && totals.busy < 0) line += "         -";
  if (columns.bubble && totals.busy >= 0) {
    std::snprintf(text, sizeof text, "  %6.1f %%", share(totals.whole - totals.busy, totals.whole));
    line += text;
  }
  std::snprintf(text, sizeof text, "  %14.1f %%", share(totals.data, totals.whole));
  line += text;
  if (columns.slowest)
    line += "  " + std::to_string(totals.slowest) + " of " + std::to_string(steps);
  return line + "\n";
}

std::string table_of(const std::map<int, RankTotals>& totals, const char* what, std::size_t steps,
                     bool several) {
  Columns columns;
  columns.slowest = several;
  for (const auto& [rank, each] : totals) columns.bubble |= each.busy >= 0;
  char head[160];
  std::snprintf(head, sizeof head, "%6s  %12s  %22s%s  %16s%s\n", "rank", what,
                "communication, exposed", columns.bubble ? "    bubble" : "", "waiting for data",
                several ? "  slowest in" : "");
  std::string table = head;
  for (const auto& [rank, each] : totals) table += line_of(rank, each, steps, columns);
  return table;
}

}  // namespace

std::vector<TrainingStep> find_steps(const std::vector<RankTimes>& ranks) {
  std::vector<std::vector<std::int64_t>> ends;
  std::size_t most = 0;
  bool from_end = false;
  for (const RankTimes& rank : ranks) {
    ends.push_back(ends_on_host(rank));
    most = std::max(most, ends.back().size());
    from_end |= rank.dropped;
  }
  std::vector<TrainingStep> steps(most > 0 ? most - 1 : 0);
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    const UnitedTimes times(ranks[at]);
    const auto& host = ends[at];
    const std::vector<std::int64_t> own = ends_on_device(ranks[at], host);
    const std::size_t ahead = from_end ? most - host.size() : 0;
    for (std::size_t i = 1; i < host.size(); ++i)
      steps[ahead + i - 1].ranks.push_back(
          times.within(ranks[at].rank, {own[i - 1], own[i]}, {host[i - 1], host[i]}));
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].number = static_cast<int>(i) + 2;  // the first update ends step 1, whose begin is open
    find_slowest(steps[i]);
  }
  return steps;
}

std::string describe_steps(const std::vector<RankTimes>& ranks,
                           const std::vector<TrainingStep>& steps) {
  std::map<int, RankTotals> totals;
  if (steps.empty()) {
    for (const RankTimes& rank : ranks)
      totals[rank.rank].add(UnitedTimes(rank).within(rank.rank, rank.whole, rank.whole));
    return "Fewer than two steps are marked (by Optimizer::update), so this is the whole run:\n" +
           table_of(totals, "run", 0, false);
  }
  for (const TrainingStep& step : steps) {
    for (const RankStep& rank : step.ranks) totals[rank.rank].add(rank);
    if (step.slowest >= 0) ++totals[step.slowest].slowest;
  }
  return table_of(totals, "median step", steps.size(), ranks.size() > 1);
}

}  // namespace catena::launch
