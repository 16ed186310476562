#include "rules.h"

#include "catena/core/error.h"

namespace catena::parallel::pipeline {
namespace {

constexpr size_t kKinds = static_cast<size_t>(Kind::kUpdate) + 1;

bool is_of_stage(Kind kind) { return kind == Kind::kReduce || kind == Kind::kUpdate; }

void check_sizes(const Schedule& s) {
  const std::string name = "schedule '" + s.name + "': ";
  CATENA_CHECK(ValueError, s.micro_batches >= 1, name, "it has ", s.micro_batches,
               " micro-batches; give it at least 1");
  CATENA_CHECK(ValueError, s.stages() >= 1, name,
               "it has no stages; rank_of_stage says where each is");
  CATENA_CHECK(ValueError, s.ranks() >= 1, name, "it has no ranks; give each a list of actions");
  for (int stage = 0; stage < s.stages(); ++stage) {
    const int rank = s.rank_of_stage[size_t(stage)];
    CATENA_CHECK(ValueError, rank >= 0 && rank < s.ranks(), name, "stage ", stage, " is on rank ",
                 rank, ", but there are lists of actions for ", s.ranks(), " ranks");
  }
}

// The name of a message's other end where there is none.
void check_neighbour(const Schedule& s, int rank, int position) {
  const Action& action = s.actions[size_t(rank)][size_t(position)];
  const int other = peer_stage(action);
  CATENA_CHECK(ValueError, other >= 0 && other < s.stages(), place(s, rank, position), "stage ",
               action.stage, " is the ", other < 0 ? "first" : "last",
               " one, with no stage at the other end of the message");
  CATENA_CHECK(ValueError, s.rank_of_stage[size_t(other)] != rank, place(s, rank, position),
               "stages ", action.stage, " and ", other, " are both on rank ", rank,
               ", which hands over without messages; leave it out");
}

}  // namespace

std::string place(const Schedule& s, int rank, int position) {
  return message("schedule '", s.name, "': rank ", rank, ", position ", position, " (",
                 to_string(s.actions[size_t(rank)][size_t(position)]), "): ");
}

Action other_end(const Action& message) {
  constexpr Kind kEnds[] = {Kind::kRecvInput, Kind::kSendOutput, Kind::kRecvGradient,
                            Kind::kSendGradient};
  const int stage = peer_stage(message);
  return {kEnds[int(message.kind) - int(Kind::kSendOutput)], stage, message.micro_batch};
}

bool is_of_gradients(const Action& message) {
  return message.kind == Kind::kSendGradient || message.kind == Kind::kRecvGradient;
}

bool hands_over(const Schedule& s, int stage) {
  return s.rank_of_stage[size_t(stage)] == s.rank_of_stage[size_t(stage) + 1];
}

Positions::Positions(const Schedule& schedule) : schedule_(schedule) {
  check_sizes(schedule);
  places_.assign(size_t(schedule.stages()) * size_t(schedule.micro_batches) * kKinds, -1);
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    const int size = static_cast<int>(schedule.actions[size_t(rank)].size());
    for (int position = 0; position < size; ++position) add(rank, position);
  }
}

size_t Positions::index(const Action& action) const {
  return (size_t(action.stage) * size_t(schedule_.micro_batches) + size_t(action.micro_batch)) *
             kKinds +
         static_cast<size_t>(action.kind);
}

void Positions::add(int rank, int position) {
  const Schedule& s = schedule_;
  const Action& action = s.actions[size_t(rank)][size_t(position)];
  const auto where = [&] { return place(s, rank, position); };
  CATENA_CHECK(ValueError, static_cast<size_t>(action.kind) < kKinds, where(), "its kind is ",
               static_cast<int>(action.kind), ", which is not one of Kind");
  CATENA_CHECK(ValueError, action.stage >= 0 && action.stage < s.stages(), where(),
               "there is no stage ", action.stage, "; the schedule has ", s.stages());
  const int home = s.rank_of_stage[size_t(action.stage)];
  CATENA_CHECK(ValueError, home == rank, where(), "stage ", action.stage, " is on rank ", home);
  const int end = is_of_stage(action.kind) ? 1 : s.micro_batches;
  CATENA_CHECK(ValueError, action.micro_batch >= 0 && action.micro_batch < end, where(),
               "there is no micro-batch ", action.micro_batch, "; expected 0 to ", end - 1);
  if (is_message(action.kind)) check_neighbour(s, rank, position);
  int& known = places_[index(action)];
  CATENA_CHECK(ValueError, known < 0, where(), "it is there twice, first at position ", known);
  known = position;
}

Action Positions::gradient_of_inputs(int stage, int micro_batch) const {
  const Action inputs{Kind::kBackwardInputs, stage, micro_batch};
  return has(inputs) ? inputs : Action{Kind::kBackward, stage, micro_batch};
}

Action Positions::gradient_of_weights(int stage, int micro_batch) const {
  const Action weights{Kind::kBackwardWeights, stage, micro_batch};
  return has(weights) ? weights : Action{Kind::kBackward, stage, micro_batch};
}

namespace {

// The rules about one schedule.
class Rules {
 public:
  Rules(const Schedule& schedule, const Positions& positions) : s_(schedule), at_(positions) {}

  void check_complete() const;
  void check_orders() const;
  void check_needs(bool messages) const;
  void check_ends_of_messages() const;
  void check_channels() const;
  void check_updates() const;

 private:
  int rank_of(int stage) const { return s_.rank_of_stage[size_t(stage)]; }
  std::string where(const Action& action) const {
    return place(s_, rank_of(action.stage), at_.of(action));
  }
  std::string name() const { return "schedule '" + s_.name + "': "; }
  void check_backward(int stage, int micro_batch) const;
  void check_order(int stage, const char* what, Action (Rules::*which)(int, int) const) const;
  Action forward(int stage, int micro_batch) const { return {Kind::kForward, stage, micro_batch}; }
  Action inputs(int stage, int micro_batch) const {
    return at_.gradient_of_inputs(stage, micro_batch);
  }
  Action weights(int stage, int micro_batch) const {
    return at_.gradient_of_weights(stage, micro_batch);
  }
  // The second must come before the first.
  void need(const Action& action, const Action& before, const char* why) const;
  void check_forward_needs(int stage, int micro_batch, bool messages) const;
  void check_gradient_needs(const Action& action, bool messages) const;
  void check_border(int stage, int micro_batch) const;
  std::vector<Action> on_channel(int from, int to, bool sends) const;
  void check_channel(int from, int to) const;

  const Schedule& s_;
  const Positions& at_;
};

void Rules::check_complete() const {
  for (int stage = 0; stage < s_.stages(); ++stage) {
    for (int k = 0; k < s_.micro_batches; ++k) {
      CATENA_CHECK(ValueError, at_.has(forward(stage, k)), name(), "rank ", rank_of(stage), ": ",
                   to_string(forward(stage, k)),
                   " is missing; every stage has a forward of each micro-batch");
      check_backward(stage, k);
    }
  }
}

void Rules::check_backward(int stage, int k) const {
  const Action both{Kind::kBackward, stage, k}, inputs{Kind::kBackwardInputs, stage, k},
      weights{Kind::kBackwardWeights, stage, k};
  if (at_.has(both)) {
    for (const Action& part : {inputs, weights})
      CATENA_CHECK(ValueError, !at_.has(part), where(part), to_string(both),
                   " makes the same gradients; a micro-batch has B, or I and W");
    return;
  }
  CATENA_CHECK(ValueError, at_.has(inputs) || at_.has(weights), name(), "rank ", rank_of(stage),
               ": ", to_string(both),
               " is missing; every stage has a backward of each micro-batch");
  CATENA_CHECK(ValueError, at_.has(weights), name(), "rank ", rank_of(stage), ": ",
               to_string(weights), " is missing, although there is ", to_string(inputs));
  CATENA_CHECK(ValueError, at_.has(inputs) || stage == 0, name(), "rank ", rank_of(stage), ": ",
               to_string(inputs), " is missing, although there is ", to_string(weights),
               "; only the first stage may leave it out");
}

void Rules::check_order(int stage, const char* what, Action (Rules::*which)(int, int) const) const {
  Action before = (this->*which)(stage, 0);
  for (int k = 1; k < s_.micro_batches; ++k) {
    const Action action = (this->*which)(stage, k);
    if (!at_.has(action)) continue;  // the first stage's gradients of inputs
    CATENA_CHECK(ValueError, at_.of(before) < at_.of(action), where(action), what,
                 " go in ascending order of micro-batches, but ", to_string(before),
                 " comes later, at position ", at_.of(before));
    before = action;
  }
}

void Rules::check_orders() const {
  for (int stage = 0; stage < s_.stages(); ++stage) {
    check_order(stage, "forwards of a stage", &Rules::forward);
    check_order(stage, "gradients of a stage's inputs", &Rules::inputs);
    check_order(stage, "gradients of a stage's weights", &Rules::weights);
  }
}

void Rules::need(const Action& action, const Action& before, const char* why) const {
  if (!at_.has(action)) return;
  CATENA_CHECK(ValueError, at_.has(before), where(action), "it needs ", to_string(before), ", ",
               why, ", which is missing");
  CATENA_CHECK(ValueError, at_.of(before) < at_.of(action), where(action), "it needs ",
               to_string(before), ", ", why, ", which comes later, at position ", at_.of(before));
}

void Rules::check_forward_needs(int stage, int k, bool messages) const {
  if (stage == 0) return;
  if (hands_over(s_, stage - 1))
    need(forward(stage, k), forward(stage - 1, k), "its input");
  else if (messages)
    need(forward(stage, k), {Kind::kRecvInput, stage, k}, "its input");
}

// What a backward, or a backward of weights without one of inputs, begins with.
void Rules::check_gradient_needs(const Action& action, bool messages) const {
  const int stage = action.stage, k = action.micro_batch;
  need(action, forward(stage, k), "its forward");
  if (stage == s_.stages() - 1) return;
  if (hands_over(s_, stage))
    need(action, inputs(stage + 1, k), "the gradient of its output");
  else if (messages)
    need(action, {Kind::kRecvGradient, stage, k}, "the gradient of its output");
}

void Rules::check_needs(bool messages) const {
  for (int stage = 0; stage < s_.stages(); ++stage) {
    for (int k = 0; k < s_.micro_batches; ++k) {
      check_forward_needs(stage, k, messages);
      if (at_.has(inputs(stage, k))) check_gradient_needs(inputs(stage, k), messages);
      const Action weights{Kind::kBackwardWeights, stage, k};
      if (!at_.has(weights)) continue;
      if (const Action half{Kind::kBackwardInputs, stage, k}; at_.has(half))
        need(weights, half, "what its gradients are made from");
      else
        check_gradient_needs(weights, messages);
    }
  }
}

void Rules::check_border(int stage, int k) const {
  const Action output{Kind::kSendOutput, stage, k}, gradient{Kind::kSendGradient, stage + 1, k};
  for (const Action& send : {output, gradient})
    CATENA_CHECK(ValueError, at_.has(send), name(), "rank ", rank_of(send.stage), ": ",
                 to_string(send), " is missing; rank ", rank_of(peer_stage(send)),
                 " needs what it would send");
  need(output, forward(stage, k), "which makes what is sent");
  need(gradient, inputs(stage + 1, k), "which makes what is sent");
}

void Rules::check_ends_of_messages() const {
  for (int stage = 0; stage + 1 < s_.stages(); ++stage)
    if (!hands_over(s_, stage))
      for (int k = 0; k < s_.micro_batches; ++k) check_border(stage, k);
}

std::vector<Action> Rules::on_channel(int from, int to, bool sends) const {
  std::vector<Action> found;
  for (const Action& action : s_.actions[size_t(sends ? from : to)])
    if (is_message(action.kind) && is_send(action.kind) == sends &&
        rank_of(peer_stage(action)) == (sends ? to : from))
      found.push_back(action);
  return found;
}

void Rules::check_channel(int from, int to) const {
  const std::vector<Action> sent = on_channel(from, to, true),
                            received = on_channel(from, to, false);
  for (size_t i = 0; i < received.size(); ++i) {
    const Action& action = received[i];
    CATENA_CHECK(ValueError, sent[i] == other_end(action), where(action),
                 "it is the receive number ", i, " from rank ", from, ", whose send number ", i,
                 " to rank ", to, " is ", to_string(sent[i]),
                 "; messages between two ranks arrive in the order of their sending");
  }
}

// Both ends of every message are there: as many receives as sends on each channel.
void Rules::check_channels() const {
  for (int from = 0; from < s_.ranks(); ++from)
    for (int to = 0; to < s_.ranks(); ++to)
      if (from != to) check_channel(from, to);
}

void Rules::check_updates() const {
  for (int stage = 0; stage < s_.stages(); ++stage) {
    const Action reduce{Kind::kReduce, stage, 0}, update{Kind::kUpdate, stage, 0};
    const Action last = weights(stage, s_.micro_batches - 1);
    need(reduce, last, "the last gradients of the stage's weights");
    need(update, last, "the last gradients of the stage's weights");
    if (!at_.has(reduce)) continue;
    CATENA_CHECK(ValueError, at_.has(update), where(reduce), to_string(update),
                 " is missing: gradients that are averaged must be used; give the stage both, or "
                 "neither");
    need(update, reduce, "which averages the gradients");
  }
}

}  // namespace

void check_computations(const Schedule& schedule, const Positions& positions, bool messages) {
  const Rules rules(schedule, positions);
  rules.check_complete();
  rules.check_orders();
  rules.check_needs(messages);
}

void check_messages(const Schedule& schedule, const Positions& positions) {
  const Rules rules(schedule, positions);
  rules.check_ends_of_messages();
  rules.check_channels();
}

void check_updates(const Schedule& schedule, const Positions& positions) {
  Rules(schedule, positions).check_updates();
}

}  // namespace catena::parallel::pipeline
