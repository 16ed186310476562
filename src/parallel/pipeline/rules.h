// Rules of a valid schedule, apart from its end: those that check() and with_messages() share.
#pragma once

#include <string>
#include <vector>

#include "catena/parallel/pipeline/schedule.h"

namespace catena::parallel::pipeline {

// Where each action of a schedule is. Its constructor refuses actions that cannot be: of another
// rank's stage, of no micro-batch, given twice, messages to no other rank.
class Positions {
 public:
  explicit Positions(const Schedule& schedule);

  // In the list of its stage's rank; -1 if it is missing.
  int of(const Action& action) const { return places_[index(action)]; }
  bool has(const Action& action) const { return of(action) >= 0; }
  // The one of these that there is; kBackward if there is none.
  Action gradient_of_inputs(int stage, int micro_batch) const;
  Action gradient_of_weights(int stage, int micro_batch) const;

 private:
  size_t index(const Action& action) const;
  void add(int rank, int position);

  const Schedule& schedule_;
  std::vector<int> places_;
};

// The receive of a send, the send of a receive.
Action other_end(const Action& message);
// Whether a message is one of gradients.
bool is_of_gradients(const Action& message);

// Whether the rank of a stage also has the stage after it.
bool hands_over(const Schedule& schedule, int stage);

// ValueError unless all computations are there, in order, with what they need before them. Messages
// count as needs if `messages` is true.
void check_computations(const Schedule& schedule, const Positions& positions, bool messages);
// Every message has both ends, after what it sends, and each pair of ranks one order of them.
void check_messages(const Schedule& schedule, const Positions& positions);
// At most one kReduce and then at most one kUpdate, after all gradients of their stage.
void check_updates(const Schedule& schedule, const Positions& positions);

// "schedule 'x': rank 1, position 7 (F2.3): ".
std::string place(const Schedule& schedule, int rank, int position);

}  // namespace catena::parallel::pipeline
