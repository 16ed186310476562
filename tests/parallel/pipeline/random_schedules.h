// Random valid schedules: any placement of stages on ranks, any order of actions that the rules of
// check() allow, backwards whole or in halves.
#pragma once

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "catena/parallel/pipeline/schedule.h"

namespace catena::testing {

struct RandomScheduleLimits {
  int ranks = 5, stages = 7, micro_batches = 6;
  bool updates = true;  // kReduce and kUpdate of some of the schedules
};

// One order of all actions, in which a message is one action at both ends, read off by each rank:
// it ends, whatever the groups.
class RandomScheduleMaker {
 public:
  RandomScheduleMaker(unsigned seed, const RandomScheduleLimits& limits) : random_(seed) {
    s_.name = "random " + std::to_string(seed);
    s_.micro_batches = up_to(limits.micro_batches);
    s_.actions.resize(size_t(up_to(limits.ranks)));
    const int stages = up_to(limits.stages);
    for (int stage = 0; stage < stages; ++stage) s_.rank_of_stage.push_back(up_to(s_.ranks()) - 1);
    for (int stage = 0; stage < stages; ++stage) add_stage(stage, limits.updates);
  }

  parallel::pipeline::Schedule make() {
    while (!nodes_.empty()) {
      std::vector<Action> ready;
      for (const auto& [action, needs] : nodes_)
        if (is_ready(needs)) ready.push_back(action);
      const Action chosen = ready[size_t(up_to(static_cast<int>(ready.size()))) - 1];
      append(chosen);
      nodes_.erase(chosen);
    }
    return std::move(s_);
  }

 private:
  using Kind = parallel::pipeline::Kind;
  using Action = parallel::pipeline::Action;

  int up_to(int n) { return std::uniform_int_distribution<int>(1, n)(random_); }
  bool crosses(int stage) const {
    return s_.rank_of_stage[size_t(stage)] != s_.rank_of_stage[size_t(stage) + 1];
  }
  bool is_ready(const std::vector<Action>& needs) const {
    for (const Action& need : needs)
      if (nodes_.count(need) != 0) return false;
    return true;
  }

  // Messages are nodes by their sends.
  void append(const Action& action) {
    s_.actions[size_t(s_.rank_of_stage[size_t(action.stage)])].push_back(action);
    if (!parallel::pipeline::is_message(action.kind)) return;
    const int other = parallel::pipeline::peer_stage(action);
    const Kind receive = action.kind == Kind::kSendOutput ? Kind::kRecvInput : Kind::kRecvGradient;
    s_.actions[size_t(s_.rank_of_stage[size_t(other)])].push_back(
        {receive, other, action.micro_batch});
  }

  // What comes from the stage before or after it: named by its kind where it is not there yet.
  Action input_of(int stage, int k) const {
    return {crosses(stage - 1) ? Kind::kSendOutput : Kind::kForward, stage - 1, k};
  }

  void add_stage(int stage, bool updates) {
    const int style = up_to(3);  // whole, halves, either
    std::vector<Action> last_inputs, last_weights;
    for (int k = 0; k < s_.micro_batches; ++k) {
      const bool split = style == 2 || (style == 3 && up_to(2) == 1);
      const bool leaves_out = split && stage == 0 && up_to(2) == 1;
      add_forward(stage, k);
      std::vector<Action> needs{{Kind::kForward, stage, k}};
      if (stage + 1 < s_.stages()) add_gradient_needs(needs, stage, k);
      if (leaves_out) {
        needs.insert(needs.end(), last_weights.begin(), last_weights.end());
        last_weights = {{Kind::kBackwardWeights, stage, k}};
        nodes_[last_weights[0]] = needs;
        continue;
      }
      const Action inputs{split ? Kind::kBackwardInputs : Kind::kBackward, stage, k};
      needs.insert(needs.end(), last_inputs.begin(), last_inputs.end());
      if (!split) needs.insert(needs.end(), last_weights.begin(), last_weights.end());
      nodes_[inputs] = needs;
      last_inputs = {inputs};
      if (split) {
        std::vector<Action> of_weights{inputs};
        of_weights.insert(of_weights.end(), last_weights.begin(), last_weights.end());
        nodes_[{Kind::kBackwardWeights, stage, k}] = of_weights;
      }
      last_weights = {{split ? Kind::kBackwardWeights : Kind::kBackward, stage, k}};
      if (stage > 0 && crosses(stage - 1)) nodes_[{Kind::kSendGradient, stage, k}] = {inputs};
    }
    if (updates) add_updates(stage, last_weights);
  }

  void add_forward(int stage, int k) {
    std::vector<Action> needs;
    if (k > 0) needs.push_back({Kind::kForward, stage, k - 1});
    if (stage > 0) needs.push_back(input_of(stage, k));
    nodes_[{Kind::kForward, stage, k}] = needs;
    if (stage + 1 < s_.stages() && crosses(stage))
      nodes_[{Kind::kSendOutput, stage, k}] = {{Kind::kForward, stage, k}};
  }

  // The next stage makes it in either form; the form that is not there is never waited for.
  void add_gradient_needs(std::vector<Action>& needs, int stage, int k) const {
    if (crosses(stage)) {
      needs.push_back({Kind::kSendGradient, stage + 1, k});
      return;
    }
    needs.push_back({Kind::kBackward, stage + 1, k});
    needs.push_back({Kind::kBackwardInputs, stage + 1, k});
  }

  void add_updates(int stage, const std::vector<Action>& last_weights) {
    const int style = up_to(3);  // neither, update, both
    std::vector<Action> needs = last_weights;
    if (style == 3) {
      nodes_[{Kind::kReduce, stage, 0}] = needs;
      needs = {{Kind::kReduce, stage, 0}};
    }
    if (style >= 2) nodes_[{Kind::kUpdate, stage, 0}] = needs;
  }

  std::mt19937 random_;
  parallel::pipeline::Schedule s_;
  std::map<Action, std::vector<Action>> nodes_;  // what is left, with what must come before
};

// The same for a seed on every machine with one standard library.
inline parallel::pipeline::Schedule random_schedule(unsigned seed,
                                                    const RandomScheduleLimits& limits = {}) {
  return RandomScheduleMaker(seed, limits).make();
}

}  // namespace catena::testing
