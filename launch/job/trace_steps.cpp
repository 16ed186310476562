#include "job/trace_steps.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace catena::launch {
namespace {

TimeSpans of_all_threads(const std::map<int, TimeSpans>& threads) {
  TimeSpans all;
  for (const auto& [thread, spans] : threads) all.insert(all.end(), spans.begin(), spans.end());
  return unite(std::move(all));
}

// One rank's times as unions.
struct UnitedTimes {
  TimeSpans communication, exposed, data;

  explicit UnitedTimes(const RankTimes& times)
      : communication(of_all_threads(times.communication)), data(unite(times.data)) {
    // A backward that waits in a collective does not work meanwhile.
    TimeSpans work;
    for (const auto& [thread, spans] : times.work) {
      const auto calls = times.communication.find(thread);
      const TimeSpans waits =
          calls == times.communication.end() ? TimeSpans() : unite(calls->second);
      for (const TimeSpan& span : subtract(unite(spans), waits)) work.push_back(span);
    }
    exposed = subtract(communication, unite(std::move(work)));
  }

  RankStep within(int rank, TimeSpan span) const {
    return {rank, span, length_within(communication, span), length_within(exposed, span),
            length_within(data, span)};
  }
};

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
  std::int64_t whole = 0, exposed = 0, data = 0;
  std::size_t slowest = 0;

  void add(const RankStep& step) {
    lengths.push_back(step.length());
    whole += step.length();
    exposed += step.exposed;
    data += step.data;
  }
};

std::string line_of(int rank, const RankTotals& totals, std::size_t steps, bool several) {
  char text[160];
  std::snprintf(text, sizeof text, "%6d  %9.3f ms  %20.1f %%  %14.1f %%", rank,
                double(median(totals.lengths)) * 1e-6, share(totals.exposed, totals.whole),
                share(totals.data, totals.whole));
  std::string line = text;
  if (several) line += "  " + std::to_string(totals.slowest) + " of " + std::to_string(steps);
  return line + "\n";
}

std::string table_of(const std::map<int, RankTotals>& totals, const char* what, std::size_t steps,
                     bool several) {
  char head[160];
  std::snprintf(head, sizeof head, "%6s  %12s  %22s  %16s%s\n", "rank", what,
                "communication, exposed", "waiting for data", several ? "  slowest in" : "");
  std::string table = head;
  for (const auto& [rank, each] : totals) table += line_of(rank, each, steps, several);
  return table;
}

}  // namespace

std::vector<TrainingStep> find_steps(const std::vector<RankTimes>& ranks) {
  std::size_t most = 0;
  bool from_end = false;
  for (const RankTimes& rank : ranks) {
    most = std::max(most, rank.updates.size());
    from_end |= rank.dropped;
  }
  std::vector<TrainingStep> steps(most > 0 ? most - 1 : 0);
  for (const RankTimes& rank : ranks) {
    const UnitedTimes times(rank);
    const std::size_t ahead = from_end ? most - rank.updates.size() : 0;
    for (std::size_t i = 1; i < rank.updates.size(); ++i)
      steps[ahead + i - 1].ranks.push_back(
          times.within(rank.rank, {rank.updates[i - 1], rank.updates[i]}));
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
      totals[rank.rank].add(UnitedTimes(rank).within(rank.rank, rank.whole));
    return "No steps are marked (by Optimizer::update), so this is the whole run:\n" +
           table_of(totals, "run", 0, false);
  }
  for (const TrainingStep& step : steps) {
    for (const RankStep& rank : step.ranks) totals[rank.rank].add(rank);
    if (step.slowest >= 0) ++totals[step.slowest].slowest;
  }
  return table_of(totals, "median step", steps.size(), ranks.size() > 1);
}

}  // namespace catena::launch
