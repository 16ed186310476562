#include "catena/parallel/pipeline/schedules.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "catena/core/error.h"
#include "compute_lists.h"
#include "rules.h"

namespace catena::parallel::pipeline {

void check_counts(const char* name, int ranks, int micro_batches) {
  CATENA_CHECK(ValueError, ranks >= 1, name, ": ", ranks, " ranks; expected at least 1");
  CATENA_CHECK(ValueError, micro_batches >= 1, name, ": ", micro_batches,
               " micro-batches; expected at least 1");
}

std::vector<int> stages_in_order(int ranks) { return stages_in_rounds(ranks, 1); }

std::vector<int> stages_in_rounds(int ranks, int stages_per_rank) {
  check_counts("stages_in_rounds", ranks, 1);
  CATENA_CHECK(ValueError, stages_per_rank >= 1, "stages_in_rounds: ", stages_per_rank,
               " stages on each rank; expected at least 1");
  std::vector<int> result;
  for (int stage = 0; stage < ranks * stages_per_rank; ++stage) result.push_back(stage % ranks);
  return result;
}

std::vector<int> stages_in_v(int ranks) {
  std::vector<int> result = stages_in_order(ranks);
  for (int rank = ranks - 1; rank >= 0; --rank) result.push_back(rank);
  return result;
}

ListMaker::ListMaker(std::string name, std::vector<int> rank_of_stage, int micro_batches)
    : next_(rank_of_stage.size()) {
  const int ranks = 1 + *std::max_element(rank_of_stage.begin(), rank_of_stage.end());
  result_ = {std::move(name), micro_batches, std::move(rank_of_stage), {}};
  result_.actions.resize(size_t(ranks));
}

bool ListMaker::add(Kind kind, int stage) {
  int& next = next_[size_t(stage)][static_cast<size_t>(kind)];
  if (next == result_.micro_batches) return false;
  result_.actions[size_t(result_.rank_of_stage[size_t(stage)])].push_back({kind, stage, next++});
  return true;
}

Schedule gpipe(int ranks, int micro_batches) {
  check_counts("gpipe", ranks, micro_batches);
  ListMaker lists("gpipe", stages_in_order(ranks), micro_batches);
  for (int stage = 0; stage < ranks; ++stage) {
    while (lists.add(Kind::kForward, stage)) continue;
    while (lists.add(Kind::kBackward, stage)) continue;
  }
  return with_messages(lists.take());
}

namespace {

Schedule lists_1f1b(int ranks, int micro_batches, int ahead = 1) {
  ListMaker lists("1f1b", stages_in_order(ranks), micro_batches);
  for (int stage = 0; stage < ranks; ++stage) {
    for (int i = 0; i < ahead * (ranks - stage - 1); ++i) lists.add(Kind::kForward, stage);
    do {
      lists.add(Kind::kForward, stage);
    } while (lists.add(Kind::kBackward, stage));
  }
  return lists.take();
}

// The stages of one rank and the micro-batches of interleaved schedules, in the order of their
// forwards or, from the last stage on, of their backwards. Micro-batches go through a stage in
// groups. Those that fill the last group up are left out by ListMaker, whose order stays valid
// without them, but they keep their place: they count.
class Rounds {
 public:
  Rounds(int ranks, int per_rank, int micro_batches, int group)
      : ranks_(ranks),
        per_rank_(per_rank),
        group_(group),
        count_((micro_batches + group - 1) / group * group * per_rank),
        micro_batches_(micro_batches) {}
  int count() const { return count_; }
  void add_forward(ListMaker& lists, int rank, int unit) const {
    add(lists, Kind::kForward, rank + ranks_ * round(unit), unit);
  }
  void add_backward(ListMaker& lists, int rank, int unit) const {
    add(lists, Kind::kBackward, rank + ranks_ * (per_rank_ - 1 - round(unit)), unit);
  }

 private:
  int round(int unit) const { return unit % (group_ * per_rank_) / group_; }
  void add(ListMaker& lists, Kind kind, int stage, int unit) const {
    const int micro_batch = unit / (group_ * per_rank_) * group_ + unit % group_;
    if (micro_batch < micro_batches_) lists.add(kind, stage);
  }

  int ranks_, per_rank_, group_, count_, micro_batches_;
};

}  // namespace

Schedule one_forward_one_backward(int ranks, int micro_batches, int ahead) {
  check_counts("one_forward_one_backward", ranks, micro_batches);
  CATENA_CHECK(ValueError, ahead >= 1, "one_forward_one_backward: ", ahead,
               " forwards ahead of the next rank; expected at least 1");
  return with_messages(lists_1f1b(ranks, micro_batches, ahead));
}

Schedule interleaved(int ranks, int stages_per_rank, int micro_batches, int group) {
  check_counts("interleaved", ranks, micro_batches);
  CATENA_CHECK(ValueError, group == 0 || group >= ranks, "interleaved: groups of ", group,
               " micro-batches for ", ranks,
               " ranks; expected 0 or at least as many as there are ranks");
  if (group == 0) group = ranks;
  CATENA_CHECK(ValueError, stages_per_rank >= 1, "interleaved: ", stages_per_rank,
               " stages on each rank; expected at least 1");
  if (stages_per_rank == 1) {
    Schedule schedule = lists_1f1b(ranks, micro_batches);
    schedule.name = "interleaved";
    return with_messages(std::move(schedule));
  }
  ListMaker lists("interleaved", stages_in_rounds(ranks, stages_per_rank), micro_batches);
  const Rounds rounds(ranks, stages_per_rank, micro_batches, group);
  for (int rank = 0; rank < ranks; ++rank) {
    const int warm_up =
        std::min(2 * (ranks - rank - 1) + (stages_per_rank - 1) * group, rounds.count());
    for (int unit = 0; unit < warm_up; ++unit) rounds.add_forward(lists, rank, unit);
    for (int unit = 0; unit < rounds.count(); ++unit) {
      if (warm_up + unit < rounds.count()) rounds.add_forward(lists, rank, warm_up + unit);
      rounds.add_backward(lists, rank, unit);
    }
  }
  return with_messages(lists.take());
}

Schedule with_updates(Schedule schedule, bool reduce) {
  const Positions positions(schedule);
  check_computations(schedule, positions, false);
  for (int stage = 0; stage < schedule.stages(); ++stage)
    for (const Kind kind : {Kind::kReduce, Kind::kUpdate})
      CATENA_CHECK(ValueError, !positions.has({kind, stage, 0}), "with_updates: schedule '",
                   schedule.name, "' already has ", to_string(Action{kind, stage, 0}));
  for (std::vector<Action>& list : schedule.actions) {
    std::vector<Action> result;
    std::vector<int> complete, updates;
    for (size_t i = 0; i < list.size(); ++i) {
      const Action& action = list[i];
      result.push_back(action);
      if (action == positions.gradient_of_weights(action.stage, schedule.micro_batches - 1))
        complete.push_back(action.stage);
      if (i + 1 < list.size() && is_message(list[i + 1].kind)) continue;
      for (const int stage : std::exchange(complete, {})) {
        if (reduce) result.push_back({Kind::kReduce, stage, 0});
        updates.push_back(stage);
      }
    }
    for (const int stage : updates) result.push_back({Kind::kUpdate, stage, 0});
    list = std::move(result);
  }
  return schedule;
}

}  // namespace catena::parallel::pipeline
