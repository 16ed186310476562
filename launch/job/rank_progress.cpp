#include "job/rank_progress.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "job/report.h"

namespace catena::launch {
namespace {

using comm::StatusBoard;

// How long ranks may lack an update of others: they wait for each other within a step, and not
// always at its end.
constexpr double kLacksUpdate = 5;
constexpr double kSlowStep = 1.5;  // of the median
// What a report of another host may be older than its age says: it was on its way.
constexpr double kOnTheWay = 0.5;

std::uint64_t common_communicator(const std::vector<StateReport>& ranks) {
  std::map<std::uint64_t, int> users;
  for (const StateReport& rank : ranks)
    if (rank.communicator != 0) ++users[rank.communicator];
  const auto most = std::max_element(
      users.begin(), users.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == users.end() ? 0 : most->first;
}

// The slot of a rank of this host; -1: it has none.
int slot_of(const StatusBoard& board, int rank) {
  for (int at = 0; at < board.slots(); ++at)
    if (board.read(at).rank == rank) return at;
  return -1;
}

// The number of its last call on the communicator, if it is known and there was one.
std::optional<std::uint64_t> calls_on(std::uint64_t communicator, const StateReport& rank,
                                      const StatusBoard* board) {
  std::optional<std::uint64_t> calls;
  if (rank.communicator == communicator) {
    calls = rank.calls;
  } else if (const int slot = board ? slot_of(*board, rank.rank) : -1; slot >= 0) {
    calls = board->last_sequence(slot, communicator);
  }
  return calls && *calls > 0 ? calls : std::nullopt;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string with_count(std::uint64_t updates) {
  return std::to_string(updates) + (updates == 1 ? " update" : " updates");
}

// Whether what was seen that long ago was seen after another rank had been further for `seconds`.
bool is_later(double age, double seconds) { return age == 0 || age + kOnTheWay < seconds; }

// The ranks that have made fewer updates than another one, which made its last one long ago.
std::string describe_lacking(const std::vector<StateReport>& ranks) {
  const auto furthest =
      std::max_element(ranks.begin(), ranks.end(), [](const StateReport& a, const StateReport& b) {
        return a.updates != b.updates ? a.updates < b.updates : a.since_update < b.since_update;
      });
  if (furthest == ranks.end() || furthest->since_update < kLacksUpdate) return "";
  std::map<std::uint64_t, std::vector<int>> lacking;
  for (const StateReport& rank : ranks)
    if (!rank.ended && rank.updates < furthest->updates &&
        is_later(rank.age, furthest->since_update))
      lacking[rank.updates].push_back(rank.rank);
  std::string text;
  for (const auto& [updates, numbers] : lacking)
    text += "slow: " + name_ranks(numbers) + (numbers.size() == 1 ? " has" : " have") + " made " +
            with_count(updates) + ", rank " + std::to_string(furthest->rank) + " made " +
            std::to_string(furthest->updates) + " " + seconds_text(furthest->since_update) +
            " ago\n";
  return text;
}

std::string describe_long_steps(const std::vector<StateReport>& ranks) {
  std::vector<double> steps;
  for (const StateReport& rank : ranks)
    if (rank.own_step > 0) steps.push_back(rank.own_step);
  if (steps.size() < 2) return "";
  const double usual = median_of(steps);
  std::string text;
  for (const StateReport& rank : ranks) {
    if (rank.own_step <= kSlowStep * usual) continue;
    char numbers[96];
    std::snprintf(numbers, sizeof(numbers), "%.1f of the median (%.4g ms against %.4g ms)",
                  rank.own_step / usual, rank.own_step * 1e3, usual * 1e3);
    text += "slow: rank " + std::to_string(rank.rank) + " needs for its part of a step " + numbers +
            "\n";
  }
  return text;
}

}  // namespace

std::string describe_stragglers(const std::vector<RankProgress>& ranks) {
  std::uint64_t furthest = 0;
  for (const RankProgress& rank : ranks) furthest = std::max(furthest, rank.calls);
  std::vector<int> ahead;
  double waited = 0, there_for = 0;  // in the furthest call, and known to have begun it
  for (const RankProgress& rank : ranks) {
    if (rank.calls < furthest) continue;
    ahead.push_back(rank.rank);
    if (rank.waits) waited = std::max(waited, rank.seconds);
    there_for = std::max({there_for, waited, rank.age});
  }
  std::map<std::uint64_t, std::vector<int>> behind;
  for (const RankProgress& rank : ranks)
    if (rank.calls < furthest && is_later(rank.age, there_for))
      behind[rank.calls].push_back(rank.rank);
  std::string text;
  for (const auto& [calls, numbers] : behind)
    text += (text.empty() ? "behind: " : "; ") + name_ranks(numbers) + " at call #" +
            std::to_string(calls);
  if (text.empty()) return "";
  text += ", while " + name_ranks(ahead) + (ahead.size() == 1 ? " is" : " are") + " at call #" +
          std::to_string(furthest);
  return text + (waited > 0 ? ", since " + seconds_text(waited) : "") + "\n";
}

std::vector<RankProgress> progress_of(const std::vector<StateReport>& ranks,
                                      const StatusBoard* board) {
  const std::uint64_t communicator = common_communicator(ranks);
  std::vector<RankProgress> progress;
  for (const StateReport& rank : ranks) {
    if (communicator == 0 || rank.ended) continue;
    // A rank that never used it may have no part in it.
    const std::optional<std::uint64_t> calls = calls_on(communicator, rank, board);
    if (!calls) continue;
    const bool waits = rank.waits && rank.communicator == communicator;
    progress.push_back({rank.rank, *calls, waits, rank.waited, rank.age});
  }
  return progress;
}

std::string describe_slow_ranks(const std::vector<StateReport>& ranks) {
  return describe_lacking(ranks) + describe_long_steps(ranks);
}

std::string describe_updates(const std::vector<StateReport>& ranks) {
  const auto most = std::max_element(
      ranks.begin(), ranks.end(),
      [](const StateReport& a, const StateReport& b) { return a.updates < b.updates; });
  if (most == ranks.end() || most->updates == 0) return "";
  char rate[64] = "";
  if (most->step > 0) std::snprintf(rate, sizeof(rate), ", %.3g a second", 1 / most->step);
  return "updates: " + std::to_string(most->updates) + rate + ", the last one " +
         seconds_text(most->since_update) + " ago\n";
}

}  // namespace catena::launch
