// Pipeline: trains a model whose stages are on several devices of this process, or on the ranks of
// a communicator, by a schedule.
//
//   namespace pp = catena::parallel::pipeline;
//   pp::Sequence model;                                  // the whole model, on every rank
//   for (int i = 0; i < 16; ++i)
//     model.add(F::Linear(4096, 4096)).add([](const Variable& h) { return F::relu(h); });
//   // over the ranks of comm; or a list of devices, or a grid
//   pp::Pipeline pipeline(model, pp::partition(model, 4), schedule, comm);
//   pipeline.setup([] { return optimizers::Adam(1e-3); });
//   const auto cross_entropy = [](const Variable& y, const Array& t) {
//     return F::softmax_cross_entropy(y, t);
//   };
//   for (int i = 0; i < steps; ++i) {
//     pipeline.step(x, t, cross_entropy);
//     if (i % 100 == 0) print(pipeline.loss());          // called on all ranks
//   }
//   pipeline.collect();                                  // the whole model on rank 0
//
// docs/guide/pipelines.md explains schedules, and what each way of running costs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/autograd/kept_results.h"
#include "catena/optimizers/optimizer.h"
#include "catena/parallel/data_axes.h"
#include "catena/parallel/gradient_reducer.h"
#include "catena/parallel/grid.h"
#include "catena/parallel/pipeline/partition.h"
#include "catena/parallel/pipeline/schedules.h"
#include "catena/parallel/pipeline/sequence.h"
#include "catena/parallel/pipeline/simulate.h"

namespace catena::parallel::pipeline {

// A batch, its first axis the samples: an array, or several; nothing on ranks that do not use it.
class Samples {
 public:
  Samples() = default;
  Samples(const Array& array) {
    if (array.defined()) arrays_.push_back(array);
  }
  Samples(Arrays arrays) : arrays_(std::move(arrays)) {}
  Samples(std::initializer_list<Array> arrays) : arrays_(arrays) {}
  const Arrays& arrays() const { return arrays_; }
  bool empty() const { return arrays_.empty(); }

 private:
  Arrays arrays_;
};

// The mean loss of a micro-batch, of a single element: a function of the last stage's result and
// the targets, (const Variable&, const Array&), or of several, (const Variables&, const Arrays&).
class Loss {
 public:
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, Loss>) Loss(F f) {
    if constexpr (std::is_invocable_r_v<Variable, F&, const Variable&, const Array&>) {
      function_ = [f = std::move(f)](const Variables& ys, const Arrays& ts) mutable {
        check_single(ys.size(), ts.size());
        return Variable(f(ys[0], ts[0]));
      };
    } else {
      static_assert(std::is_invocable_r_v<Variable, F&, const Variables&, const Arrays&>,
                    "a loss takes (const Variable&, const Array&), or (const Variables&, const "
                    "Arrays&), and gives a Variable");
      function_ = std::move(f);
    }
  }
  Variable operator()(const Variables& ys, const Arrays& ts) const { return function_(ys, ts); }

 private:
  static void check_single(size_t results, size_t targets);
  std::function<Variable(const Variables&, const Arrays&)> function_;
};

// Settings of a pipeline.
struct PipelineOptions {
  // Scales the gradients of all stages together to at most this L2 norm; 0: not. All updates then
  // come after the last gradient of all ranks, and one all_reduce over them.
  double clip_norm = 0;
  // Of a grid with tensor ranks: parameters of which each has a slice, where their layers have not
  // placed them so (Parameter::place). Only slices count on all ranks in norms.
  Parameters sliced = {};
  // Stages that keep the inputs of their micro-batches, and besides what `keep` says, and compute
  // the rest again in backward (F::recompute).
  std::vector<int> recompute = {};
  Keep keep = Keep::kNothing;
  // Whether a schedule without kReduce and kUpdate gets them (with_updates), as those of
  // schedules.h do. If not, step() leaves the gradients of the batch in the parameters, those of
  // tied weights summed; in a grid, those of the replica's own samples. ValueError with clip_norm,
  // unless the schedule has updates.
  bool updates = true;
  // Of the numbers that units draw, dropout for one. Without it, that of the default random state
  // of cpu:0, as random::seed set it. Replicas of a grid draw different numbers.
  std::optional<uint64_t> seed = {};
  // Over "nccl": a receive begins after the computations before it in its rank's list, not as soon
  // as the messages before it have come. A receive of NCCL takes multiprocessors from its begin on,
  // and waits there for its sender. Messages should then be placed for measured costs
  // (with_messages), where they are made. In a captured step it is always so.
  bool receives_wait = false;
  // Of a grid: sizes of the buckets in which gradients are averaged, and what each stage's replicas
  // spread over themselves (or over axes.shard): states (kStates), and gradients (kGradients).
  // kAuto spreads nothing here. ValueError for kParameters and for slices.
  BucketOptions buckets = {};
};

// The gradients of a batch are the sum over its micro-batches, in ascending order, of (samples of
// the micro-batch / samples of the batch) * gradient of its mean loss. So results do not depend on
// the cut and the schedule: on CPU devices they are equal bit for bit. What a unit draws at random
// depends on the seed, the step, the unit and the micro-batch alone; running averages move in the
// order of micro-batches.
//
// Over ranks every rank has the whole model, made alike (the same seed), and trains its stages of
// it: these are moved to its device. Weights that units of several stages share are untied
// (Sequence::untie); their gradients are summed before the update, so that they stay equal. A unit
// that uses a parameter which no unit of its stage lists is a GradientError in the first step.
//
// Layers may be frozen and unfrozen between steps (optimizer(s).freeze). Over ranks gradients of a
// stage that is frozen travel all the same; one that is frozen as a whole in its first step cannot
// be trained later (GradientError).
//
// One call at a time: a unit, a loss or another thread that calls step, measure, predict, loss or
// another collective function while one of them runs gets a ValueError.
//
// When a rank throws in step or predict, the others end with a CommError that names the first, even
// if it catches the exception. A batch that step refuses before anything is sent (too small, arrays
// of other lengths) ends nothing where all ranks refuse it; a rank that refuses it alone and goes
// on is found in its next call. A step that has thrown in one process leaves parameters as they
// were, or some stages updated; it does not count, so that the next one draws the same random
// numbers.
class Pipeline {
 public:
  // In this process, with rank r of the schedule on devices[r], which may be equal: one thread
  // issues the work of all, and transfers run beside it. The model must outlive the pipeline.
  // ValueError when schedule, cut, devices and model do not fit, check(schedule) refuses, or the
  // schedule updates some stages only.
  Pipeline(Sequence& model, const Cut& cut, Schedule schedule, std::vector<Device> devices,
           const PipelineOptions& options = {});
  // Over the ranks of a communicator, which must have as many as the schedule. It must outlive the
  // pipeline unless it is shared.
  Pipeline(Sequence& model, const Cut& cut, Schedule schedule, Communicator& comm,
           const PipelineOptions& options = {});
  Pipeline(Sequence& model, const Cut& cut, Schedule schedule, const CommunicatorPtr& comm,
           const PipelineOptions& options = {});
  // The same in each replica of a mesh: `comm` is mesh["pipeline"], or over() of several axes.
  // Gradients are averaged over axes.batch, as each stage's are complete, beside what is still
  // computed. Ranks along all other axes share the layers of a stage: the model is made of layers
  // over them (tensor/linear.h), and so is the loss; norms and overflows are those of all slices.
  // Collective over the mesh; it must outlive the pipeline.
  Pipeline(Sequence& model, const Cut& cut, Schedule schedule, Communicator& comm,
           const DataAxes& axes, const PipelineOptions& options = {});
  // The same over grid.pipeline(), averaged over grid.data(), with layers over grid.tensor().
  Pipeline(Sequence& model, const Cut& cut, Schedule schedule, const Grid& grid,
           const PipelineOptions& options = {});
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;

  // Moves this process's stages to their devices, and gives each an optimizer that `make_rule`
  // makes: a function that returns a rule, with its hooks and groups, by value or by unique_ptr.
  // A hook that clips by norm is refused in the first update: see PipelineOptions::clip_norm. A
  // rule with a loss scale gets one scale for all stages. Replicas of a grid get the first one's
  // values. Collective; ValueError on all ranks unless they have the same schedule, cut, model,
  // clip_norm and buckets, and where layers are synchronised (SyncBatchNormalization) over several
  // ranks of one pipeline. ValueError, in one process too, unless `make_rule` returns the same rule
  // for all stages: update stages, hyper-parameters, groups, loss scale.
  template <class MakeRule>
  void setup(MakeRule make_rule) {
    setup_with([make_rule = std::move(make_rule)]() mutable -> std::unique_ptr<Optimizer> {
      using Rule = std::decay_t<decltype(make_rule())>;
      if constexpr (std::is_base_of_v<Optimizer, Rule>)
        return std::make_unique<Rule>(make_rule());
      else
        return make_rule();
    });
  }

  // One step: all actions of the schedule, on a batch that is cut into its micro-batches, as equal
  // as they get, the first ones longer. x is used where the first stage is, t where the last one
  // is; every rank passes one of them at least, of the same number of samples. Returns the mean
  // loss of the batch, 0-d, where the last stage is, and an undefined array elsewhere. Nothing
  // waits for a device, unless micro-batches of this size are new: then ranks learn the shapes of
  // messages, by a forward of zeros. Afterwards a step on the same arrays may be captured in a
  // cuda::Graph, with all stages on one GPU or over "nccl", after prepare_for_capture().
  //
  // In a grid a batch without samples is possible: nothing is computed, and the gradients of the
  // other replicas are taken (set_batch_weight); ValueError if the model has layers synchronised
  // over ranks (SyncBatchNormalization). ValueError for fewer samples than micro-batches, and when
  // ranks of a pipeline have other numbers of samples in the first step on such a batch;
  // GradientError under NoBackprop; ShapeError for a loss that is not a single element, and for a
  // stage whose results change their shape for one size of micro-batch.
  Array step(const Samples& x, const Samples& t, const Loss& loss);
  // Trains as so many calls of step() on that batch do, notes when each action ran on its device,
  // and waits for all of them: a timeline to draw (drawing.h) and to ask where the time goes
  // (rank_times), of all ranks on every rank. Collective. Run a few steps before, so that memory is
  // there and kernels are compiled. kReduce is left out, as are updates that come after the
  // gradients of all stages (clip_norm, loss scales, tied weights); memory is not measured. The
  // clocks of ranks on several hosts agree to the time of a barrier. Error during a capture.
  Simulation measure(const Samples& x, const Samples& t, const Loss& loss, int steps = 1);
  // The mean loss of the last step, over all replicas, on every rank. Collective; waits for the
  // device. ValueError before the first step, and after one that has thrown.
  double loss();
  // The model's results for x in test state, without gradients, where the last stage is; nothing
  // elsewhere. Collective. The batch may be smaller than the number of micro-batches, whose results
  // are joined along their first axis: ShapeError for one whose first axis is not the samples, such
  // as a mean of the batch.
  Arrays predict(const Samples& x);

  // Of a grid: this replica's batches count with n_local / n_global from now on; see
  // MultiNodeOptimizer::set_batch_weight. ValueError without a grid.
  void set_batch_weight(int64_t n_local, int64_t n_global);
  // The learning rate of all stages; between replays of a graph, too. Call it on all ranks.
  void set_lr(double lr);
  // Makes what a captured step needs; after the first step.
  void prepare_for_capture();
  // Gives running averages the mean over the replicas of a grid (persistents.h); collective.
  void average_persistents();
  // Copies the parameters and persistent arrays of all stages into the model of rank `root` of the
  // pipeline, to be saved or used there; collective. In one process they are there.
  void collect(int root = 0);
  // The number of steps that have succeeded, replays of a graph included: random numbers depend on
  // it. A run that is resumed sets it, on all ranks; ValueError below 0.
  int64_t steps() const;
  void set_steps(int64_t n);
  // The seed of the numbers that units draw (PipelineOptions::seed), for the same purpose; after
  // setup.
  uint64_t seed() const;
  void set_seed(uint64_t seed);

  // Whether the stage is in this process, where it is, and its optimizer: ValueError for one that
  // is on another rank, before setup, and for a stage without parameters.
  bool has_stage(int stage) const;
  Device device_of(int stage) const;
  Optimizer& optimizer(int stage);
  // Those of all stages in this process that have parameters. ValueError before setup.
  std::vector<Optimizer*> optimizers();
  // What was given.
  const Schedule& schedule() const;
  const Cut& cut() const;
  Sequence& model() const;

  class Executor;  // the library's own

 private:
  void setup_with(const std::function<std::unique_ptr<Optimizer>()>& make_rule);
  std::unique_ptr<Executor> executor_;
};

}  // namespace catena::parallel::pipeline
