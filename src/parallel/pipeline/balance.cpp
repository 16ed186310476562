#include "catena/parallel/pipeline/balance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "catena/core/error.h"
#include "picture.h"

namespace catena::parallel::pipeline {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

void check_costs(const std::vector<double>& costs, const char* what) {
  for (size_t i = 0; i < costs.size(); ++i)
    CATENA_CHECK(ValueError, std::isfinite(costs[i]) && costs[i] >= 0, "balance: the cost of ",
                 what, " ", i, " is ", costs[i], "; expected a finite number of at least 0");
}

class Cuts {
 public:
  Cuts(const std::vector<double>& costs, int stages, const BalanceOptions& options)
      : units_(static_cast<int>(costs.size())), stages_(stages), options_(options), sums_{0} {
    for (const double cost : costs) sums_.push_back(sums_.back() + cost);
  }

  // Of units [begin, end) as that stage.
  double cost(int stage, int begin, int end) const {
    return sums_[size_t(end)] - sums_[size_t(begin)] + border(stage - 1, begin) +
           border(stage, end);
  }
  double sum() const { return sums_.back(); }

  // The smallest largest cost of a stage.
  double smallest_largest() const {
    return solve([](double before, double cost) { return std::max(before, cost); }, nullptr);
  }
  // First units, and the number of units, of the cut with the least sum of squares whose stages all
  // cost at most the limit.
  std::vector<int> evenest(double limit) const {
    std::vector<std::vector<int>> choices;
    solve(
        [&](double before, double cost) { return cost > limit ? kInfinite : before + cost * cost; },
        &choices);
    std::vector<int> first(size_t(stages_) + 1, units_);
    for (int stage = stages_ - 1; stage >= 0; --stage)
      first[size_t(stage)] = choices[size_t(stage)][size_t(first[size_t(stage) + 1])];
    return first;
  }

 private:
  // Between that stage and the next one, before unit `end`.
  double border(int stage, int end) const {
    if (stage < 0 || stage + 1 >= stages_ || options_.border_costs.empty()) return 0;
    const std::vector<int>& ranks = options_.rank_of_stage;
    if (!ranks.empty() && ranks[size_t(stage)] == ranks[size_t(stage) + 1]) return 0;
    return options_.border_costs[size_t(end) - 1];
  }

  // The best combination of stages' costs; choices: of each stage and number of units up to its
  // end, the first unit.
  template <class Combine>
  double solve(Combine combine, std::vector<std::vector<int>>* choices) const {
    std::vector<double> best(size_t(units_) + 1, kInfinite);
    best[0] = 0;
    for (int stage = 0; stage < stages_; ++stage) {
      std::vector<double> next(best.size(), kInfinite);
      std::vector<int> choice(best.size(), 0);
      for (int end = stage + 1; end <= units_ - (stages_ - 1 - stage); ++end) {
        for (int begin = stage; begin < end; ++begin) {
          if (best[size_t(begin)] == kInfinite) continue;
          const double value = combine(best[size_t(begin)], cost(stage, begin, end));
          if (value >= next[size_t(end)]) continue;
          next[size_t(end)] = value;
          choice[size_t(end)] = begin;
        }
      }
      best = std::move(next);
      if (choices != nullptr) choices->push_back(std::move(choice));
    }
    return best[size_t(units_)];
  }

  const int units_, stages_;
  const BalanceOptions& options_;
  std::vector<double> sums_;  // of the units before each
};

std::string range(int begin, int end) {
  if (end - begin == 1) return message("unit ", begin);
  return message("units ", begin, " to ", end - 1);
}

// Why the largest stage is no smaller.
std::string reason(const std::vector<double>& costs, const Balance& result, const Cuts& cuts) {
  const auto largest = static_cast<size_t>(
      std::max_element(result.costs.begin(), result.costs.end()) - result.costs.begin());
  const int begin = result.first[largest], end = result.first[largest + 1];
  if (result.largest <= result.ideal * (1 + 1e-9)) return "all stages cost the same";
  std::string text = message("limited by stage ", largest);
  const double units = std::accumulate(costs.begin() + begin, costs.begin() + end, 0.0);
  const double at_borders = cuts.cost(static_cast<int>(largest), begin, end) - units;
  if (end - begin == 1)
    text += message(", which is unit ", begin, " alone: units are not cut");
  else
    text += message(", as ", range(begin, end), " cost ", short_number(units),
                    " and other cuts have larger stages");
  if (at_borders > 0) text += message("; its borders cost ", short_number(at_borders));
  return text;
}

std::string describe(const std::vector<double>& costs, const Balance& result, const Cuts& cuts) {
  std::string text = message(costs.size(), costs.size() == 1 ? " unit in " : " units in ",
                             result.stages(), result.stages() == 1 ? " stage" : " stages",
                             ", the largest at ", short_number(result.largest));
  if (result.ideal > 0)
    text += message(", ", short_number(result.largest / result.ideal), " of the ideal ",
                    short_number(result.ideal));
  text += '\n';
  for (size_t i = 0; i < result.costs.size(); ++i)
    text += message("  stage ", i, ": ", range(result.first[i], result.first[i + 1]), ", ",
                    short_number(result.costs[i]), "\n");
  return text + "  " + reason(costs, result, cuts) + "\n";
}

}  // namespace

Balance balance(const std::vector<double>& costs, int stages, const BalanceOptions& options) {
  check_costs(costs, "unit");
  check_costs(options.border_costs, "border");
  CATENA_CHECK(ValueError, stages >= 1, "balance: ", stages, " stages; expected at least 1");
  CATENA_CHECK(ValueError, costs.size() >= size_t(stages), "balance: ", costs.size(), " units for ",
               stages, " stages; each needs at least one, so ask for fewer stages");
  CATENA_CHECK(ValueError,
               options.border_costs.empty() || options.border_costs.size() + 1 == costs.size(),
               "balance: ", options.border_costs.size(), " costs of borders; ", costs.size(),
               " units have ", costs.size() - 1);
  CATENA_CHECK(ValueError,
               options.rank_of_stage.empty() || options.rank_of_stage.size() == size_t(stages),
               "balance: rank_of_stage has ", options.rank_of_stage.size(), " entries for ", stages,
               " stages");
  const Cuts cuts(costs, stages, options);
  const double limit = cuts.smallest_largest();
  Balance result;
  result.first = cuts.evenest(limit);
  for (int stage = 0; stage < stages; ++stage)
    result.costs.push_back(
        cuts.cost(stage, result.first[size_t(stage)], result.first[size_t(stage) + 1]));
  result.largest = *std::max_element(result.costs.begin(), result.costs.end());
  result.ideal = cuts.sum() / stages;
  result.text = describe(costs, result, cuts);
  return result;
}

}  // namespace catena::parallel::pipeline
