// Data parallelism over the ranks of a communicator: each rank runs the whole model on its share of
// the batch, gradients are averaged while backward runs, and all ranks make the same update.
//
//   auto comm = create_communicator();
//   Mlp model;  model.to(comm->device());
//   auto optimizer = create_multi_node_optimizer(optimizers::Adam(), comm);
//   optimizer.setup(model);                                  // all ranks get rank 0's values
//   for (...) {
//     optimizer.zero_grads();
//     optimizer.set_batch_weight(n_local, n_global);         // only if shards are uneven
//     F::softmax_cross_entropy(model(x), t).backward();      // the mean over this rank's samples
//     optimizer.update();
//   }
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "catena/parallel/batch_slices.h"
#include "catena/parallel/data_axes.h"
#include "catena/parallel/gradient_reducer.h"
#include "catena/parallel/no_sync.h"
#include "catena/parallel/sharded_states.h"

namespace catena::parallel {

// On GPUs of one host large models are trained with sharded states (Sharding::kAuto), as that is
// faster there; {.sharding = Sharding::kNone} keeps everything on every rank.
//
// With {.sharding = Sharding::kStates} each rank keeps and updates its part of the rule's states
// and master copies, a share of 1 / size of their memory. Gradients are reduced into that part, and
// the parameters are gathered after each update: the same bits as without, but for sums over all
// gradients (sharded_states.h). With kGradients and kParameters those are spread as well
// (bucket_options.h). The optimizer's state() is then collective. Gradients outside of a rank's
// part are not there from their reduction to zero_grads: reading one is a GradientError.
//
// Over a mesh arrays may be spread within a host and kept alike across hosts, so that only averages
// of a rank's part travel between them:
//
//   Mesh mesh(*comm, {{"host", -1}, {"gpu", 8}});
//   parallel::DataAxes axes{.mesh = mesh, .batch = {"host", "gpu"}, .shard = {"gpu"}};
//   auto optimizer = create_multi_node_optimizer(optimizers::Adam(), axes, options);
//
// On GPUs that reach each other's memory, parameters and gradients lie where the communicator wants
// them (CATENA_SHARED_MEMORY), unless the optimizer has a memory of its own (set_memory).
//
// An optimizer whose gradients are averaged over all ranks. All ranks must call setup, the
// synchronised backward passes and update in the same order; several optimizers on one communicator
// too (CommError naming the optimizers, in the order of their setup, and the buckets). Synchronised
// is a backward pass between zero_grads and update. setup, zero_grads and update may be
// called here or on the optimizer itself; what is not repeated here is reached by `->`.
class MultiNodeOptimizer {
 public:
  MultiNodeOptimizer(Optimizer& optimizer, const BatchRanks& ranks,
                     const BucketOptions& options = {});
  MultiNodeOptimizer(std::unique_ptr<Optimizer> optimizer, const BatchRanks& ranks,
                     const BucketOptions& options = {});
  ~MultiNodeOptimizer();
  MultiNodeOptimizer(MultiNodeOptimizer&&) noexcept = default;

  // Sets the optimizer up, checks that all ranks have the same BucketOptions, the same model and
  // the same hyper-parameters (ValueError naming the first difference, on all ranks) and copies
  // rank 0's parameters and persistent arrays to the others. The model must be on comm.device()
  // (DeviceError). With slices a model with SyncBatchNormalization is refused (ValueError): its
  // statistics would be those of slices that run at the same time, which are others for each number
  // of ranks.
  void setup(Parameterized& model);
  void setup(Parameterized&& model) = delete;
  void setup(const Parameters& parameters);
  void zero_grads() { optimizer_->zero_grads(); }
  // Waits, on the device, for the averages and updates. GradientErrors as Optimizer::update. The
  // first update after setup and every 64th end with check_state(), unless they are captured, and
  // compare what hooks did to the gradients (UpdateContext::note_change).
  void update() { optimizer_->update(); }
  // The optimizer's own, see there.
  double lr() const { return optimizer_->lr(); }
  void set_lr(double lr) { optimizer_->set_lr(lr); }
  void prepare_for_capture() { optimizer_->prepare_for_capture(); }

  // This rank's gradients count with n_local / n_global from now on (default 1 / size): the samples
  // of the step, or with accumulate() of the pass. Where a loss divides by something else (labels
  // that are not ignored) and declares it (mean.h), that is what counts in the end, and in memory
  // gradients are the mean's times a number until update(), which divides by it. A rank that
  // has run out of samples passes 0, skips forward and backward (or runs them on the empty batch,
  // where gathers_in_use() or ranks meet in a layer) and calls update() all the same.
  // ValueError with BucketOptions::slices: slices(n_local, n_global) says it there, and where the
  // weight changes behind a pass of the step that was inside no_sync().
  void set_batch_weight(int64_t n_local, int64_t n_global);
  // The same for a step that a graph replays, with slices too: what slices() said when the step was
  // captured may have changed since, by a shorter batch.
  void set_replayed_weight(int64_t n_local, int64_t n_global) {
    reducer_->set_batch_weight(n_local, n_global);
  }
  // Where the batch comes from: the ranks compare that of each step, some steps
  // later, so that other orders, seeds, data sets or batch sizes on one rank are named.
  // training::make_step calls both, or slices().
  void set_batch_order(const BatchOrder& order) { reducer_->set_batch_order(order); }
  // Equal bits on any number of ranks: with {.slices = 8} a global batch is cut into 8 slices,
  // whose sizes differ by at most one and do not depend on the ranks. Each rank runs its slices one
  // after the other, each with a backward pass of its own, and the gradients are added up in a
  // balanced binary tree over the slices. After any number of steps the parameters then have the
  // same bits on 1, 2, 4 and 8 ranks. The kernels must be deterministic: setup throws a ValueError
  // unless config().deterministic is set.
  //
  // A range for a loop over this rank's slices (batch_slices.h), in place of set_batch_weight:
  // n_local of n_global samples are this rank's, as datasets::RankOf divides them. Once a step, on
  // all ranks, between zero_grads and update. Without the option: one slice, the whole, so that a
  // loop serves both. GradientError where gradients are not zero, ValueError for another n_local.
  // training::make_step runs the loop.
  //
  // In a slice, random numbers of the model (dropout) are those of step and slice: they come from
  // rank 0's default generator, whose state all ranks get in setup; between the steps all ranks
  // must draw alike. Persistent arrays (running means) are kept for each slice, and
  // average_persistents gives all of them the mean, summed in a tree as well. What stays with the
  // number of ranks: the last bits of reported means, and of norms of LAMB and LARS where states
  // are sharded.
  [[nodiscard]] BatchSlices slices(int64_t n_local, int64_t n_global);
  // BucketOptions::slices.
  int slice_count() const;
  // Several passes for one update, as one pass over all their samples: all but the last while the
  // result lives. set_batch_weight then has the samples of each pass, which need not be known
  // ahead, nor be there on all ranks: a rank without samples in a pass sets 0 and leaves it out.
  // A loss that is a mean over something else than samples counts by that (mean.h).
  //
  //   optimizer.zero_grads();
  //   for (size_t i = 0; i < batches.size(); ++i) {
  //     std::optional<parallel::NoSync> more;
  //     if (i + 1 < batches.size()) more.emplace(optimizer.accumulate());
  //     optimizer.set_batch_weight(n_local[i], n_global[i]);
  //     if (n_local[i] > 0) loss(batches[i]).backward();
  //   }
  //   optimizer.update();
  //
  // With Sharding::kGradients and kParameters each pass is reduced, and added to the part that this
  // rank keeps. The others wait for a pass that it leaves out until its next set_batch_weight, pass
  // or update.
  //
  // GradientError behind a pass of the step. In a pass whose loss is a sum of several means
  // everything must count, as mean.counted, which is read, says (GradientError).
  [[nodiscard]] NoSync accumulate() {
    reducer_->accumulate();
    return NoSync(reducer_->comm());
  }
  // While the result lives, backward only adds to this rank's gradients; the first backward after
  // it averages the sums. Several micro-batches: all but the last inside, each loss multiplied by
  // its share. Nothing is weighed by what a loss counted: accumulate() does that.
  [[nodiscard]] NoSync no_sync() {
    reducer_->expect_pass_by_hand();
    return NoSync(reducer_->comm());
  }
  // Copies rank 0's parameters, persistent arrays, states, hyper-parameters and t to the other
  // ranks, for instance after loading a checkpoint on rank 0 alone (from_rank0.h reads whole
  // checkpoints so). Collective. ValueError where states are spread and were not loaded
  // equally often on all ranks: rank 0 has kept its part of what it loaded, and the rest is
  // nowhere.
  void broadcast_state();
  // Calls average_persistents (persistents.h) for the model given to setup, and
  // gather_parameters(). Collective: all ranks, before test passes and before rank 0 writes a
  // checkpoint.
  void average_persistents();
  // Collective: the values of all parameters are here until the next update, for reading, saving
  // and writing: what kParameters wants before anything but functions touches them, and
  // gather_ahead after replays and before raw pointers are used that were taken before the update.
  // The next step compares the values over the ranks, which must write the same. Nothing with whole
  // states.
  void gather_parameters() {
    if (!sharded()) return;
    sharded_->gather_parameters();
    reducer_->compare_next();
  }
  // Collective: ValueError on all ranks, with the first that differs and the ranks, unless all hold
  // the same bits in parameters, persistent arrays that are declared OverRanks::kEqual, states,
  // hyper-parameters and t; the communicator has then failed.
  // Reads every parameter and state once, on its device, and waits for that. For steps that no
  // update() sees: call it every now and then between replays of a graph.
  // Gathers the parameters first (gather_parameters); the checks of update() leave out those that
  // are not here.
  void check_state();

  // Whether ranks meet in each use of a parameter (Sharding::kParameters on several ranks): those
  // without samples must run the forward and backward pass as well.
  bool gathers_in_use() const { return sharded() != nullptr && sharded()->gathers_in_use(); }

  // The wrapped optimizer, its members, the communicator and the reducer of gradients.
  Optimizer& actual_optimizer() { return *optimizer_; }
  Optimizer* operator->() { return optimizer_; }
  Communicator& comm() { return reducer_->comm(); }
  GradientReducer& reducer() { return *reducer_; }
  const GradientReducer& reducer() const { return *reducer_; }
  // Null without sharding; with kAuto until setup has chosen it.
  const ShardedStates* sharded() const {
    return sharded_ && sharded_->is_on() ? sharded_.get() : nullptr;
  }

 private:
  void add_sharding(const BatchRanks& ranks, const BucketOptions& options);

  std::unique_ptr<Optimizer> owned_;
  Optimizer* optimizer_;
  std::shared_ptr<GradientReducer> reducer_;
  std::shared_ptr<ShardedStates> sharded_;                // or null
  std::shared_ptr<optimizers::UpdateStage> before_rule_;  // or null
};

// ChainerMN's spelling. The first form leaves the optimizer with the caller, who keeps it alive.
// The ranks are a communicator, a shared one, or DataAxes.
inline MultiNodeOptimizer create_multi_node_optimizer(Optimizer& optimizer, const BatchRanks& ranks,
                                                      const BucketOptions& options = {}) {
  return MultiNodeOptimizer(optimizer, ranks, options);
}
inline MultiNodeOptimizer create_multi_node_optimizer(std::unique_ptr<Optimizer> optimizer,
                                                      const BatchRanks& ranks,
                                                      const BucketOptions& options = {}) {
  return MultiNodeOptimizer(std::move(optimizer), ranks, options);
}
template <class Rule>
requires(std::is_base_of_v<Optimizer, Rule> && !std::is_lvalue_reference_v<Rule>) MultiNodeOptimizer
    create_multi_node_optimizer(Rule&& optimizer, const BatchRanks& ranks,
                                const BucketOptions& options = {}) {
  return MultiNodeOptimizer(std::make_unique<Rule>(std::move(optimizer)), ranks, options);
}

}  // namespace catena::parallel

namespace catena {
using parallel::create_multi_node_optimizer;
using parallel::MultiNodeOptimizer;
}  // namespace catena
