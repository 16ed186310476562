// Schedules executed with sends that wait for their receives, group by group: what check() proves
// the end of a schedule with and simulate() adds times to.
#pragma once

#include <string>
#include <vector>

#include "catena/parallel/pipeline/schedule.h"

namespace catena::parallel::pipeline {

// Positions [begin, end) of a rank's list: one computation, or the messages of a group. A barrier
// has none; all ranks wait for each other there.
struct Item {
  enum class Type : unsigned char { kComputation, kMessages, kBarrier } type;
  int begin, end;
};

// The items of each rank.
std::vector<std::vector<Item>> items_of(const Schedule& schedule);

// A number of a message, the same at both ends, below message_count().
int message_number(const Schedule& schedule, const Action& action);
int message_count(const Schedule& schedule);

// Told what happens.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void compute(int /*rank*/, int /*round*/, int /*position*/) {}
  virtual void post(int /*rank*/, int /*round*/, const Item& /*group*/) {}
  virtual void complete(int /*rank*/, int /*round*/, const Item& /*group*/) {}
  virtual void pass_barrier(int /*round*/) {}
};

// Executes a schedule that follows all other rules, `rounds` times in a row.
class Walk {
 public:
  Walk(const Schedule& schedule, std::vector<std::vector<Item>> items, int rounds = 1);

  // True if all ranks come to their ends.
  bool run(Observer& observer);
  // After a run that did not end: the ranks that wait for each other, and what for.
  std::string describe_cycle() const;

 private:
  struct State {
    int round = 0;
    size_t item = 0;
    bool waits = false;  // in the group or at the barrier at which it is
  };
  bool done(const State& state) const { return state.round == rounds_; }
  bool advance(int rank, Observer& observer);
  bool advance_one(int rank, Observer& observer);
  void step(int rank);
  const Item& item(int rank) const;
  bool is_complete(int rank) const;
  const Action* first_pending(int rank) const;
  bool pass_barrier(Observer& observer);

  const Schedule& schedule_;
  const std::vector<std::vector<Item>> items_;
  const int rounds_;
  std::vector<State> states_;
  std::vector<int> posted_;  // ends of each message, over all rounds
};

}  // namespace catena::parallel::pipeline
