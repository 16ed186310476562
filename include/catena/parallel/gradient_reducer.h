// GradientReducer: averages gradients over the ranks of a communicator, bucket by bucket, while the
// backward pass that makes them is still running.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "catena/autograd/backward_observer.h"
#include "catena/autograd/mean.h"
#include "catena/comm/communicator.h"
#include "catena/optimizers/optimizer.h"
#include "catena/parallel/batch_order.h"
#include "catena/parallel/bucket_options.h"
#include "catena/parallel/data_axes.h"

namespace catena::parallel {

// The library's own.
class BucketExchange;
class LossWeight;
class Round;
class SliceRun;
class StateComparison;
class StepAgreement;

// A slice of an arena: slots [first, last), elements [begin, end).
struct Bucket {
  size_t arena, first, last;
  int64_t begin, end;
};

// Cuts arenas into buckets, in the order in which backward completes them; an arena of which a rank
// updates a part is one bucket. Only the layout and the options matter, so that all ranks cut
// alike.
std::vector<Bucket> make_buckets(const std::vector<optimizers::ParameterArena>& arenas,
                                 const BucketOptions& options);

// A stage of the updates of an optimizer, added by MultiNodeOptimizer. Between two updates each
// bucket is reduced exactly once, in order of index on every rank: as soon as it and all before it
// are final in a synchronised backward; at the end of that backward if parameters were not used; at
// the latest in update (a rank whose loss did not touch the parameters, or that has no samples). On
// GPUs the reductions run on the communicator's side stream and the host never waits.
//
// Where a rank updates a part of each arena and BucketOptions::sharding says so, a bucket is
// reduced into that part, and its other gradients are not here until zero_grads or the next pass.
//
// A backward pass is synchronised between zero_grads and update of this optimizer, outside of
// no_sync. Any other pass that reaches its parameters, such as one for another optimizer, only adds
// to this rank's gradients.
class GradientReducer : public BackwardObserver, public optimizers::UpdateStage {
 public:
  GradientReducer(const BatchRanks& ranks, const BucketOptions& options);

  // Gradients of this rank count with n_local / n_global from now on, instead of 1 / size. All
  // ranks must call it, with counts that add up to n_global. ValueError for numbers outside that,
  // and on all ranks when they do not add up: on CPUs within four steps, on GPUs within sixteen.
  // ValueError, too, for another weight behind a pass of the step that was not synchronised, unless
  // passes accumulate.
  void set_batch_weight(int64_t n_local, int64_t n_global);
  // The passes of this step accumulate, each with the weight that is set for it. Between zero_grads
  // and the first pass of the step (GradientError).
  void accumulate();
  // A scope of no_sync() begins. The step is weighed by hand, also on a rank that has no pass in
  // it.
  void expect_pass_by_hand();
  // Where the batches come from, in which the ranks must agree; ValueError likewise.
  void set_batch_order(const BatchOrder& order) { order_ = order; }

  // Says that the gradients of these parameters, or of all, are complete in this step: for passes
  // inside of no_sync() whose end only the caller knows, as in a pipeline. Buckets of which every
  // parameter is complete are reduced then, in order of index; update() reduces the others. All
  // ranks name the same parameters in the same order. Between zero_grads and update; passes over
  // the other parameters may follow. GradientError after a synchronised backward, and for a later
  // pass that reaches one of these parameters; ValueError for one that the optimizer does not have.
  void gradients_are_final(const Parameters& parameters);
  void gradients_are_final();

  // Collective, once, in setup: ValueError on all ranks unless they give the same BucketOptions.
  void check_options();
  // Collective: ValueError on all ranks, beginning with `who`, unless they hold the same
  // parameters, states and hyper-parameters; see MultiNodeOptimizer::check_state.
  void check_state(const char* who);
  // Ranks that spread parameters compare them before the next update (with kParameters in the next
  // zero_grads), since somebody may write to them until then.
  void compare_next();

  // The communicator and the buckets, in the order of their reduction.
  Communicator& comm() const { return comm_; }
  const std::vector<Bucket>& buckets() const;
  // Its place among the optimizers of the communicator, from 1, by which errors name its calls; 0
  // before setup.
  int number() const { return number_; }
  // Buckets started since the last update, for tests.
  size_t started() const;
  // What losses of this step divide by.
  LossWeight& losses() { return *losses_; }
  // How this rank runs its slices; null without BucketOptions::slices.
  const std::shared_ptr<SliceRun>& slice_run() const { return slices_; }

  void backward_begins() override;
  void backward_starts(PassStart& start) override;
  void gradient_is_final(ParameterState& parameter) override;
  void backward_ends() override;
  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kReduce; }
  const char* name() const override { return "reduce"; }
  void before_setup(Optimizer& optimizer, const Parameters& parameters) override;
  void before_values_move(const optimizers::ArenaSet& layout,
                          const NamedPersistents& persistents) override;
  void after_setup(Optimizer& optimizer) override;
  bool reads_gradients(const Optimizer&) const override { return false; }
  void run(optimizers::UpdateContext& update) override;
  void before_rule_reads(size_t index) override;
  void after_update(Optimizer& optimizer) override;
  void discard(Optimizer& optimizer) override;
  void before_accumulate(Optimizer& optimizer) override;
  Array gradient_factor(Device device) override;
  void before_layout_moves(Optimizer& optimizer) override;

 private:
  void open_step();
  void reopen_step();
  void prepare_reductions();
  bool adds_next_pass() const;
  void join_left_out();
  void begin_named_round();
  void start_ready_buckets();
  void start_next();
  Event reduce_slices(const Bucket& bucket);
  StepAgreement* begin_agreement();
  void count_losses();
  bool adds_to_step() const;
  void begin_last_reductions();
  void note_first_pass(PassStart& start);
  void count_first_step();
  bool weighs_losses() const;
  void flush();
  void wait();
  bool anything_kept() const;
  bool is_in_own_step();

  BatchRanks ranks_;
  Communicator& comm_;  // all of them
  BucketOptions options_;
  Optimizer* optimizer_ = nullptr;
  std::shared_ptr<BucketExchange> buckets_;
  std::shared_ptr<StateComparison> comparison_;
  std::shared_ptr<Round> round_;
  int number_ = 0;  // among the optimizers of the communicator; 0: not set up
  std::shared_ptr<SliceRun> slices_;
  std::shared_ptr<LossWeight> losses_;
  // Of the first step, if nobody zeroes gradients before it: its passes, which are not
  // synchronised, and what the loss of the only one divided by.
  struct FirstStep {
    int passes = 0;
    Array counted;             // of a loss that is a mean
    std::vector<Mean> of_sum;  // of one that is a sum of them
  } first_step_;
  Array first_factor_;  // of this rank's gradients in that step, before their reduction
  BatchOrder order_;
};

}  // namespace catena::parallel
