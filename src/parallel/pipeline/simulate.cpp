#include "catena/parallel/pipeline/simulate.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <numeric>
#include <vector>

#include "catena/core/error.h"
#include "rules.h"
#include "walk.h"

namespace catena::parallel::pipeline {

double Simulation::bubble(int rank) const {
  return seconds > 0 ? 1 - busy.at(size_t(rank)) / seconds : 0;
}

double Simulation::bubble() const {
  const double work = std::accumulate(busy.begin(), busy.end(), 0.0);
  return seconds > 0 ? 1 - work / (seconds * ranks()) : 0;
}

namespace {

// The bytes that ranks hold in the course of a simulated schedule.
class MemoryUse {
 public:
  explicit MemoryUse(int ranks) : changes_(static_cast<size_t>(ranks)) {}
  void add(int rank, double time, double bytes) {
    if (bytes != 0) changes_[size_t(rank)].push_back({time, bytes});
  }
  // What a rank holds at most. Of changes at the same time, those that free come first.
  std::vector<double> peaks() {
    std::vector<double> result;
    for (std::vector<Change>& changes : changes_) {
      std::sort(changes.begin(), changes.end());
      double now = 0, peak = 0;
      for (const Change& change : changes) peak = std::max(peak, now += change.bytes);
      result.push_back(peak);
    }
    return result;
  }

 private:
  struct Change {
    double time, bytes;
    auto operator<=>(const Change&) const = default;
  };
  std::vector<std::vector<Change>> changes_;
};

double largest(const std::vector<double>& of_ranks) {
  return of_ranks.empty() ? 0 : *std::max_element(of_ranks.begin(), of_ranks.end());
}

}  // namespace

double Simulation::ideal_seconds() const { return largest(busy); }

double Simulation::largest_peak() const { return largest(peak_bytes); }

namespace {

// One end of a message has been posted, or both.
struct Delivery {
  int posted = 0;
  double begin = 0, end = 0;
  double produced = 0;  // when what is sent was ready
};

class Simulator : public Observer {
 public:
  Simulator(const Schedule& schedule, const Costs& costs, int steps)
      : s_(schedule),
        costs_(costs),
        memory_(schedule.ranks()),
        messages_(size_t(message_count(schedule)) * size_t(steps)),
        ready_(messages_.size()),
        computes_(size_t(schedule.ranks())),
        transfers_(computes_.size()),
        reduces_(computes_.size()),
        channels_(computes_.size() * computes_.size()),
        reduced_(size_t(schedule.stages())),
        split_(size_t(schedule.stages()) * size_t(schedule.micro_batches)) {
    result_.busy.assign(computes_.size(), 0);
  }

  void compute(int rank, int step, int position) override;
  void post(int rank, int step, const Item& group) override;
  void complete(int rank, int step, const Item& group) override;
  void pass_barrier(int) override { std::fill(computes_.begin(), computes_.end(), all_ready()); }

  Simulation result();

 private:
  const Action& action_at(int rank, int position) const {
    return s_.actions[size_t(rank)][size_t(position)];
  }
  size_t number(const Action& message, int step) const {
    return size_t(step * message_count(s_) + message_number(s_, message));
  }
  bool overlaps() const { return costs_.transfers == Transfers::kOverlap; }
  double all_ready() const {
    return std::max(*std::max_element(computes_.begin(), computes_.end()),
                    *std::max_element(reduces_.begin(), reduces_.end()));
  }
  double arrival(const Action& action, int step);
  void reduce(int rank, int step, const Action& action);
  void produce(const Action& action, int step, double end);
  void hold(int rank, const Action& action, double begin, double end);
  void free_message(int rank, const Action& message, double time);
  size_t state_of(const Action& action) const {
    return size_t(action.stage * s_.micro_batches + action.micro_batch);
  }
  void carry(Delivery& message, const Action& action, int rank);

  const Schedule& s_;
  const Costs& costs_;
  Simulation result_;
  MemoryUse memory_;
  std::vector<Delivery> messages_;
  std::vector<double> ready_;                           // of received messages
  std::vector<double> computes_, transfers_, reduces_;  // of each rank: when its stream is free
  std::vector<double> channels_;                        // from rank to rank
  std::vector<double> reduced_;                         // of each stage: when its kReduce ended
  std::vector<bool> split_;  // of each micro-batch and stage: kBackwardInputs was there
};

// When what other ranks send for a computation has come.
double Simulator::arrival(const Action& action, int step) {
  const int stage = action.stage, k = action.micro_batch;
  if (action.kind == Kind::kForward)
    return stage > 0 && !hands_over(s_, stage - 1)
               ? ready_[number({Kind::kRecvInput, stage, k}, step)]
               : 0;
  if (action.kind == Kind::kUpdate) return reduced_[size_t(stage)];
  return stage + 1 < s_.stages() && !hands_over(s_, stage)
             ? ready_[number({Kind::kRecvGradient, stage, k}, step)]
             : 0;
}

void Simulator::compute(int rank, int step, int position) {
  const Action& action = action_at(rank, position);
  if (action.kind == Kind::kReduce && overlaps()) return reduce(rank, step, action);
  double& free = computes_[size_t(rank)];
  const double waits_from = free;
  const double begin = action.kind == Kind::kReduce ? free : std::max(free, arrival(action, step));
  free = begin + seconds_of(costs_, s_, action);
  if (action.kind == Kind::kReduce)
    reduced_[size_t(action.stage)] = free;
  else
    result_.busy[size_t(rank)] += free - begin;
  result_.timeline.push_back({rank, step, action, begin, free, waits_from});
  produce(action, step, free);
  hold(rank, action, begin, free);
}

void Simulator::reduce(int rank, int step, const Action& action) {
  double& free = reduces_[size_t(rank)];
  const double begin = std::max(free, computes_[size_t(rank)]);
  free = begin + seconds_of(costs_, s_, action);
  reduced_[size_t(action.stage)] = free;
  result_.timeline.push_back({rank, step, action, begin, free, begin});
}

// The output or gradient that a computation makes for another rank.
void Simulator::produce(const Action& action, int step, double end) {
  const int stage = action.stage, k = action.micro_batch;
  if (action.kind == Kind::kForward && stage + 1 < s_.stages() && !hands_over(s_, stage))
    messages_[number({Kind::kSendOutput, stage, k}, step)].produced = end;
  if ((action.kind == Kind::kBackward || action.kind == Kind::kBackwardInputs) && stage > 0 &&
      !hands_over(s_, stage - 1))
    messages_[number({Kind::kSendGradient, stage, k}, step)].produced = end;
}

// What a computation keeps and frees, received messages included.
void Simulator::hold(int rank, const Action& action, double begin, double end) {
  const StageCosts& stage = costs_.of(action.stage);
  const double part = action.micro_batch == s_.micro_batches - 1 ? costs_.last_micro_batch : 1;
  if (action.kind == Kind::kForward) {
    memory_.add(rank, begin, part * stage.activations);
    free_message(rank, {Kind::kRecvInput, action.stage, action.micro_batch}, begin);
  } else if (action.kind == Kind::kBackwardWeights && split_[state_of(action)]) {
    memory_.add(rank, end, -part * stage.for_weights);
  } else if (action.kind < Kind::kSendOutput) {
    const bool keeps = action.kind == Kind::kBackwardInputs;
    split_[state_of(action)] = keeps;
    memory_.add(rank, end, part * ((keeps ? stage.for_weights : 0) - stage.activations));
    free_message(rank, {Kind::kRecvGradient, action.stage, action.micro_batch}, end);
  }
}

// If there is such a message.
void Simulator::free_message(int rank, const Action& message, double time) {
  const int other = peer_stage(message);
  if (other >= 0 && other < s_.stages() && !hands_over(s_, std::min(other, message.stage)))
    memory_.add(rank, time, -bytes_of(costs_, s_, message));
}

// A group is posted when what it sends is there, on the side stream if there is one.
void Simulator::post(int rank, int step, const Item& group) {
  double time = overlaps() ? transfers_[size_t(rank)] : computes_[size_t(rank)];
  for (int at = group.begin; at < group.end; ++at)
    if (const Action& action = action_at(rank, at); is_send(action.kind))
      time = std::max(time, messages_[number(action, step)].produced);
  for (int at = group.begin; at < group.end; ++at) {
    const Action& action = action_at(rank, at);
    Delivery& message = messages_[number(action, step)];
    message.begin = std::max(message.begin, time);
    if (!is_send(action.kind)) memory_.add(rank, time, bytes_of(costs_, s_, action));
    if (++message.posted == 2) carry(message, action, rank);
  }
}

void Simulator::carry(Delivery& message, const Action& action, int rank) {
  const int other = s_.rank_of_stage[size_t(peer_stage(action))];
  const int from = is_send(action.kind) ? rank : other, to = from == rank ? other : rank;
  double& channel = channels_[size_t(from * s_.ranks() + to)];
  message.begin = std::max(message.begin, channel);
  channel = message.end = message.begin + seconds_of(costs_, s_, action);
  ++result_.messages;
  result_.message_bytes += bytes_of(costs_, s_, action);
}

void Simulator::complete(int rank, int step, const Item& group) {
  double end = 0;
  for (int at = group.begin; at < group.end; ++at)
    end = std::max(end, messages_[number(action_at(rank, at), step)].end);
  for (int at = group.begin; at < group.end; ++at) {
    const Action& action = action_at(rank, at);
    const Delivery& message = messages_[number(action, step)];
    result_.timeline.push_back({rank, step, action, message.begin, message.end, message.begin});
    if (!is_send(action.kind)) {
      ready_[number(action, step)] = end;
      continue;
    }
    memory_.add(rank, message.produced, bytes_of(costs_, s_, action));
    memory_.add(rank, end, -bytes_of(costs_, s_, action));
  }
  (overlaps() ? transfers_ : computes_)[size_t(rank)] = end;
}

Simulation Simulator::result() {
  result_.name = s_.name;
  result_.micro_batches = s_.micro_batches;
  result_.rank_of_stage = s_.rank_of_stage;
  result_.peak_bytes = memory_.peaks();
  for (const Span& span : result_.timeline) result_.seconds = std::max(result_.seconds, span.end);
  std::stable_sort(result_.timeline.begin(), result_.timeline.end(),
                   [](const Span& a, const Span& b) { return a.begin < b.begin; });
  return std::move(result_);
}

// The items with a barrier before the first kUpdate of each rank, or at its end.
std::vector<std::vector<Item>> with_barriers(const Schedule& schedule,
                                             std::vector<std::vector<Item>> items) {
  for (size_t rank = 0; rank < items.size(); ++rank) {
    const auto updates = [&](const Item& item) {
      return schedule.actions[rank][size_t(item.begin)].kind == Kind::kUpdate;
    };
    std::vector<Item>& list = items[rank];
    const auto first = std::find_if(list.begin(), list.end(), updates);
    const int at =
        first == list.end() ? static_cast<int>(schedule.actions[rank].size()) : first->begin;
    list.insert(first, {Item::Type::kBarrier, at, at});
  }
  return items;
}

}  // namespace

Simulation simulate(const Schedule& schedule, const Costs& costs, const SimulateOptions& options) {
  check(schedule);
  check(costs, schedule);
  CATENA_CHECK(ValueError, options.steps >= 1, "simulate: it was asked for ", options.steps,
               " steps; expected at least 1");
  std::vector<std::vector<Item>> items = items_of(schedule);
  if (options.synchronise_updates) items = with_barriers(schedule, std::move(items));
  Simulator simulator(schedule, costs, options.steps);
  Walk walk(schedule, std::move(items), options.steps);
  CATENA_CHECK(ValueError, walk.run(simulator), "simulate: with updates that wait for all ranks, ",
               "schedule '", schedule.name, "' does not end: ", walk.describe_cycle(),
               "; put the updates behind all gradients of their rank");
  return simulator.result();
}

}  // namespace catena::parallel::pipeline
