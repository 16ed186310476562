// ShardedStates: states, gradients and parameters of an optimizer spread over the ranks of a
// communicator (S. Rajbhandari et al., ZeRO: memory optimizations toward training trillion
// parameter models, 2020).
#pragma once

#include <memory>

#include "catena/comm/communicator.h"
#include "catena/optimizers/optimizer.h"
#include "catena/parallel/bucket_options.h"
#include "catena/parallel/data_axes.h"

namespace catena::parallel {

class ParameterGathers;  // the library's own

// A stage of an optimizer whose gradients are averages over all ranks when the rule runs, whole on
// every rank or the part that it updates. Rank r keeps the r-th part of every arena's states and
// master copies and updates that part of the parameters; after the rule, all ranks gather the
// parameters, or, with kParameters, each keeps its part alone until functions use them. Element by
// element this is what one rank would do, so the results have the same bits; norms (LARS, LAMB,
// clipping by the norm) are summed over the ranks, and what a loss scale finds on one of them skips
// the update on all. Rules that update parameter by parameter cannot (ValueError in setup). Add it
// before setup.
//
// With kParameters the values of a unit are gathered before a function uses one of its parameters,
// forward or backward, and freed when functions begin to use the third other unit since; of units
// that are together more than 16 MiB, when a function uses another one. From setup on no rank has
// all values: whoever loads some calls gather_parameters() before. The units of the last step say
// what is gathered ahead on the side stream. All ranks must therefore use the parameters in the
// same order, in training and elsewhere (CommError). One function may use parameters of three units
// at most.
//
// Optimizer::state() gathers the states: all ranks must call it, and a save that calls it,
// together. load_state() keeps this rank's part of what it is given, so a state may come from
// another number of ranks.
class ShardedStates : public optimizers::UpdateStage, public optimizers::Processes {
 public:
  // Arrays are spread over ranks.shard(). Of the options, sharding (kNone stands for kStates; with
  // kAuto each setup looks whether the model is large enough), sizes, units and gather_ahead
  // matter. By default no arena is cut.
  explicit ShardedStates(const BatchRanks& ranks);
  ShardedStates(const BatchRanks& ranks, const BucketOptions& options);
  ~ShardedStates() override;

  // Whether arrays are spread: with kAuto as the last setup has chosen.
  bool is_on() const { return is_on_; }
  // Whether ranks meet in each use of a parameter: kParameters on several ranks.
  bool gathers_in_use() const;
  // Collective: whether all ranks have loaded states equally often since the last call that found
  // so, or setup. Each rank keeps its part of what it is given, so that states which one rank alone
  // has loaded are nowhere. True for rules without states.
  bool are_loaded_alike();
  // Collective: brings the values of all parameters, so that anybody may read and write them until
  // the next update. All ranks write the same. Not during a capture.
  void gather_parameters();
  // The stage that must stand in front of the rule with kParameters and gather_ahead.
  static std::shared_ptr<optimizers::UpdateStage> before_rule(
      const std::shared_ptr<ShardedStates>& states);
  // Waits for what is on its way, before the stage is removed. What other ranks keep stays there.
  void give_up();
  // How often a unit, or a bucket, was gathered, for tests.
  int64_t gathers() const;

  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kGather; }
  const char* name() const override { return "sharded states"; }
  bool reads_gradients(const Optimizer&) const override { return false; }
  optimizers::Processes* processes() override { return this; }
  Share share() const override;
  optimizers::ArenaCuts cuts() const override;
  // Collective with kAuto.
  void before_setup(Optimizer& optimizer, const Parameters& parameters) override;
  void setup_failed() override { is_on_ = was_on_; }
  void after_setup(Optimizer& optimizer) override;
  // Values are where a captured step must find them: gather_parameters() before it does not count.
  // With kParameters and gather_ahead they go, until the next use or gather_parameters().
  void prepare_for_capture(Optimizer& optimizer) override;
  void run(optimizers::UpdateContext& update) override;
  void discard(Optimizer& optimizer) override;
  Array gather(const Array& part) override;
  void sum(const Arrays& arrays, Sum of) override;
  void before_layout_moves(Optimizer& optimizer) override;
  void state_was_loaded() override { ++loads_; }

 private:
  void leave_last_setup();
  bool is_worthwhile(const Optimizer& optimizer, const Parameters& parameters) const;
  bool has_parts_of_gradients() const;

  BatchRanks ranks_;
  Communicator& comm_;  // ranks_.shard()
  BucketOptions options_;
  bool is_on_;                 // as the last setup has chosen, or the one that is going on
  bool was_on_ = false;        // before that
  int number_ = 0;             // of the optimizer, in errors
  int64_t loads_ = 0;          // of states, since the last comparison
  bool lacks_a_load_ = false;  // in which they differed
  Optimizer* optimizer_ = nullptr;
  std::unique_ptr<ParameterGathers> gathers_;
};

}  // namespace catena::parallel
