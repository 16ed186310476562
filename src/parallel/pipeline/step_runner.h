// Runner of steps and test passes: issues the actions of a plan on the micro-batches of a batch.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "parallel/pipeline/link.h"
#include "parallel/pipeline/loss_counts.h"
#include "parallel/pipeline/message_info.h"
#include "parallel/pipeline/plan.h"
#include "parallel/pipeline/updates.h"

namespace catena::parallel::pipeline {

// Contents of the messages between two stages: learnt once for each form of micro-batch, checked
// whenever one is sent. Boundaries have the number of the stage before them.
class ShapeBook {
 public:
  // What the batch needs and the book has not is new until the next batch.
  void begin_batch(const MicroBatches& batch);
  const std::vector<BatchForm>& new_forms() const { return new_; }
  // A step that fails may have learnt its own mistake.
  void forget_new();
  void forget_all() { pages_.clear(); }

  // Begins a page for a form; false if there is one.
  bool open(const BatchForm& form) { return pages_.try_emplace(form).second; }
  const MessageInfo& at(const BatchForm& form, int boundary) const {
    return pages_.at(form).at(boundary);
  }
  void learn(const BatchForm& form, int boundary, MessageInfo message) {
    pages_[form][boundary] = std::move(message);
  }
  // ShapeError unless the results have the shapes and dtypes that were learnt; what is not known
  // yet is learnt. Which gradients are wanted may change when layers are frozen: in one process it
  // is learnt anew. Over ranks the other one is not told: gradients that are no longer wanted come
  // all the same, and one that would not come is a GradientError.
  void check(const BatchForm& form, int boundary, const Variables& results, bool over_ranks);

 private:
  std::map<BatchForm, std::map<int, MessageInfo>> pages_;
  std::vector<BatchForm> new_;
};

class StepRunner {
 public:
  // `numbers` are those of the running step.
  StepRunner(const Plan& plan, Updates& updates, const UnitNumbers& numbers);

  // One of this process.
  Stage& stage(int s) { return *stages_[size_t(s)]; }
  // The batch of the next run. Error where ranks would send each other shapes in a capture.
  void begin_batch(const MicroBatches& batch);
  // All actions, noted in `recorder` unless it is null. An empty batch takes part in what replicas
  // do together.
  void train(const Samples& x, const Samples& t, const Loss& loss, Recorder* recorder);
  // The results of the last stage, joined; nothing elsewhere.
  Arrays predict(const Samples& x);
  // After a failure: of the shapes that this batch has taught, or of all.
  void forget_new_shapes() { book_.forget_new(); }
  void forget_all_shapes() { book_.forget_all(); }

  // Of the last step, where the last stage is: the mean loss, 0-d.
  const Array& loss() const { return loss_; }
  const LossCounts& counts() const { return counts_; }

 private:
  void begin_run(const Samples& x, const Samples& t, Recorder* recorder);
  void learn_shapes();
  void learn(int m);
  MessageInfo receive_info(int rank, const BatchForm& form) const;
  const MessageInfo* info_before(int s, const BatchForm& form) const;

  void run_actions();
  void run(const Action& action);
  void compute(const Action& action);
  void exchange(std::span<const Action> group);
  void post(const Action& send, Arrays arrays, const Array& counted = {});
  Event made_for(int from, int to) const;
  Parcel take(const Action& receive);
  Variables forward(int s, int m);
  void compute_loss(int m, const Variables& results);
  void backward(int s, int m, bool split);
  void hand_over_counts(int s);
  void predict_part(int m, std::vector<Arrays>& results);

  const Plan& plan_;
  Updates& updates_;
  const UnitNumbers& numbers_;
  std::vector<std::unique_ptr<Stage>> stages_;  // null where another rank has it
  ShapeBook book_;
  std::unique_ptr<Link> link_;

  // Of the running step
  MicroBatches batch_;
  Recorder* recorder_ = nullptr;
  Arrays x_, t_;  // on the devices of the first and of the last stage
  const Loss* loss_function_ = nullptr;
  Mailbox mailbox_;
  LossCounts counts_;
  Array loss_;
};

}  // namespace catena::parallel::pipeline
