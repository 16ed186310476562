// A stage of a pipeline in this process: its units, and what its micro-batches wait with between
// forward and backward.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catena/autograd/backward.h"
#include "catena/autograd/kept_results.h"
#include "catena/parallel/pipeline/sequence.h"
#include "parallel/pipeline/message_info.h"
#include "parallel/pipeline/unit_numbers.h"

namespace catena::parallel::pipeline {

// Units [begin, end) of a sequence as one model, under the names that they have in it.
class UnitRange final : public Parameterized {
 public:
  UnitRange(Sequence& model, int begin, int end) : model_(&model), begin_(begin), end_(end) {}
  const std::string& name(int unit) const;
  // `running` is the unit that runs.
  Variables run(const Variables& xs, int micro_batch, const UnitNumbers& numbers,
                int& running) const;

  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  void visit_functions(const FunctionVisitor& visitor) override;

 private:
  Sequence* model_;
  int begin_, end_;
};

class Stage {
 public:
  Stage(int number, const UnitRange& units, Device device, Keep keep)
      : number_(number), units_(units), device_(device), keep_(keep) {}

  UnitRange& units() { return units_; }
  Device device() const { return device_; }

  // Forgets all micro-batches, and makes room for so many.
  void begin_step(int micro_batches);
  // The results of a micro-batch. Gradients of those inputs are wanted that `info` says; null: of
  // none. Under NoBackprop nothing is kept. GradientError where a unit uses a parameter that no
  // unit of the stage lists, in the first pass that is recorded.
  Variables forward(int micro_batch, const Arrays& inputs, const MessageInfo* info,
                    const UnitNumbers& numbers);
  // A forward that nothing is kept of and that moves nothing, for the shapes of its results.
  Variables try_out(const Arrays& inputs, const MessageInfo* info, const UnitNumbers& numbers);

  // What a function of the results of a micro-batch gives, where backward is to begin instead.
  void go_on_to(int micro_batch, const Variable& loss);

  // What comes back to the stage goes through its units; with `split` the gradients of the weights
  // are left to backward_weights. Undefined gradients count as zero. Afterwards the gradients of
  // the inputs, undefined for those that are not wanted.
  Arrays backward(int micro_batch, const Arrays& gradients, bool split);
  // What backward has left, and whether it has.
  void backward_weights(int micro_batch);
  bool is_split(int micro_batch) const { return batches_[size_t(micro_batch)].weights.has_value(); }

 private:
  class ParameterCheck;
  struct MicroBatch {
    Variables inputs, results;
    std::optional<DeferredWeights> weights;  // between kBackwardInputs and kBackwardWeights
  };
  int number_;
  UnitRange units_;
  Device device_;
  Keep keep_;  // kEverything: nothing is computed again
  bool is_checked_ = false;
  int running_ = 0;  // the unit that runs
  std::vector<MicroBatch> batches_;
};

}  // namespace catena::parallel::pipeline
