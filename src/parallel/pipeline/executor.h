// What runs the actions of a schedule.
//
// executor.cpp has what it is made of, executor_setup.cpp setup and what is collective besides
// steps, executor_step.cpp steps and test passes, updates.h their end.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "catena/parallel/pipeline/pipeline.h"
#include "parallel/pipeline/issue_order.h"
#include "parallel/pipeline/link.h"
#include "parallel/pipeline/recorder.h"
#include "parallel/pipeline/stage.h"
#include "parallel/pipeline/updates.h"

namespace catena::parallel::pipeline {

class Pipeline::Executor {
 public:
  // Where stages are: devices of this process, or ranks of `comm`, in replicas over `data`.
  struct Place {
    std::vector<Device> devices;
    Communicator* comm = nullptr;
    Communicator* data = nullptr;
    Communicator* tensor = nullptr;
    // Ranks that share the layers of a stage; 1 without a grid.
    int tensor_size() const { return tensor ? tensor->size() : 1; }
  };
  Executor(Sequence& model, const Cut& cut, Schedule schedule, Place place,
           const PipelineOptions& options);

  using MakeRule = std::function<std::unique_ptr<Optimizer>()>;
  void setup(const MakeRule& make_rule);
  Array step(const Samples& x, const Samples& t, const Loss& loss);
  Simulation measure(const Samples& x, const Samples& t, const Loss& loss, int steps);
  double loss();
  Arrays predict(const Samples& x);
  void set_batch_weight(int64_t n_local, int64_t n_global);
  void prepare_for_capture();
  void average_persistents();
  void collect(int root);
  int64_t steps() const { return *next_step_; }
  void set_steps(int64_t n);
  uint64_t seed() const { return seed_; }
  void set_seed(uint64_t seed);

  bool has_stage(int s) const { return stages_.at(size_t(s)) != nullptr; }
  Stage& stage(int s) { return *stages_[size_t(s)]; }
  Updates& updates() { return updates_; }
  void require_setup(const char* who) const;
  void require_same_units(const char* who) const;

  Sequence& model;
  const Cut cut;
  const Schedule schedule;

 private:
  // The samples of a micro-batch.
  struct Shard {
    int64_t begin = 0, size = 0;
  };
  int rank_of(int s) const { return schedule.rank_of_stage[size_t(s)]; }
  bool is_last(int s) const { return s + 1 == schedule.stages(); }
  bool is_over_ranks() const { return place_.comm != nullptr && place_.comm->size() > 1; }
  Device device_of_rank(int rank) const;
  void check_fit() const;
  void check_updates() const;
  void check_synchronised_layers() const;
  void check_equal_plans() const;
  void add_optimizers(const MakeRule& make_rule);
  std::vector<std::vector<int>> ranks_of_ties() const;

  // Batches and the shapes of messages
  int64_t samples_to_train(const Samples& x, const Samples& t);
  void cut_batch(int64_t n, int parts, Boundary::Mode mode);
  void begin_batch(const Samples& x, const Samples& t);
  void begin_step();
  Arrays part(const Arrays& batch, int micro_batch) const;
  double weight_of(int micro_batch) const {
    return double(shards_[size_t(micro_batch)].size) / double(samples_);
  }
  Boundary::Key key_of(int micro_batch) const { return {shards_[size_t(micro_batch)].size, mode_}; }
  void learn_messages();
  void learn(const Boundary::Key& key, const Arrays& first_inputs);
  MessageInfo receive_info(int rank, const Boundary::Key& key);
  Variables trial_inputs(int s, const Boundary::Key& key, const Arrays& first_inputs);

  // Failures
  class OnlyCall;
  void forget_new_shapes();
  template <class F>
  auto or_end_all(const char* what, F part);
  void end_others(const std::string& text, bool by_peer) const;
  int rank_in_job() const;
  void refuse_synchronised_layers();

  // Actions
  Array make_step(const Samples& x, const Samples& t, const Loss& loss);
  void run_step(const Samples& x, const Samples& t, const Loss& loss);
  Arrays run_prediction(const Samples& x);
  void run_actions();
  void run(const Action& action);
  void compute(const Action& action);
  void note_arrival();
  std::vector<Span> gathered(std::vector<Span> spans, double start) const;
  void exchange(const Issued* begin, const Issued* end);
  Message message_of(const Action& action);
  Arrays take_inputs(int s, int m);
  void hand_on(int s, int m, const Variables& results);
  Event made_for(int s, int other) const;
  void forward(int s, int m);
  void compute_loss(int m);
  void backward(int s, int m, bool split);
  void keep_results(const Variables& ys, int64_t samples, std::vector<Arrays>& results);
  void predict_part(int m, std::vector<Arrays>& results);

  Place place_;
  PipelineOptions options_;
  CommunicatorPtr keep_comm_, keep_data_, keep_tensor_;
  std::vector<std::unique_ptr<Stage>> stages_;  // null where another rank has it
  std::vector<Boundary> boundaries_;            // behind each stage but the last
  std::set<Boundary::Key> learnt_;              // over ranks
  int64_t calls_ = 0;                           // of step and predict, those that threw included
  std::vector<Issued> order_;                   // of this process
  bool has_updates_ = false;
  std::unique_ptr<Link> link_;
  Recorder* recorder_ = nullptr;  // of a step that is measured
  Updates updates_;
  UnitNumbers numbers_;
  uint64_t seed_ = 0;  // of the first replica
  size_t size_;        // units when the pipeline was made
  std::shared_ptr<int64_t> next_step_ = std::make_shared<int64_t>(0);
  std::optional<double> weight_;  // of this replica
  bool is_set_up_ = false;
  std::atomic<const char*> running_{nullptr};  // the name of the call, null for none
  enum class LastStep : uint8_t { kNone, kThrown, kDone };
  LastStep last_step_ = LastStep::kNone;

  // Of the running step
  std::vector<Shard> shards_;
  int64_t samples_ = 0;
  std::vector<Boundary::Key> new_keys_;  // micro-batches whose shapes were not known before
  Boundary::Mode mode_ = Boundary::Mode::kTrain;
  Arrays x_, t_;  // on the devices of the first and of the last stage
  const Loss* loss_function_ = nullptr;
  // By stage and micro-batch: what an action has made and another one takes. Inputs of the stage,
  // gradients of its results; its results and the gradients of its inputs, before they are sent.
  using Parcels = std::vector<std::vector<Parcel>>;
  Parcels inputs_, gradients_, outgoing_results_, outgoing_gradients_;
  std::vector<Variable> losses_;  // of the micro-batches, times the loss scale
  Array loss_;
};

// While it lives, other calls are refused: one from a unit or a loss, or from another thread, would
// find half of what it needs.
class Pipeline::Executor::OnlyCall {
 public:
  OnlyCall(Executor& executor, const char* who) : running_(executor.running_) {
    const char* other = nullptr;
    CATENA_CHECK(ValueError, running_.compare_exchange_strong(other, who), "Pipeline::", who,
                 ": called while Pipeline::", other,
                 " runs, by one of the model's units, by the loss or by another thread; call it "
                 "before or after");
  }
  ~OnlyCall() { running_ = nullptr; }
  OnlyCall(const OnlyCall&) = delete;
  OnlyCall& operator=(const OnlyCall&) = delete;

 private:
  std::atomic<const char*>& running_;
};

}  // namespace catena::parallel::pipeline
