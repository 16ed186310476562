// A stage of a pipeline in this process: its units, and what its micro-batches wait with between
// forward and backward.
#pragma once

#include <string>
#include <vector>

#include "catena/autograd/backward.h"
#include "catena/parallel/pipeline/sequence.h"
#include "parallel/pipeline/message_info.h"
#include "parallel/pipeline/unit_numbers.h"

namespace catena::parallel::pipeline {

// Units [begin, end) of a sequence as one model, under the names that they have in it.
class UnitRange final : public Parameterized {
 public:
  UnitRange(Sequence& model, int begin, int end) : model_(&model), begin_(begin), end_(end) {}
  int begin() const { return begin_; }
  int end() const { return end_; }
  Variables run(const Variables& xs, int micro_batch, const UnitNumbers& numbers) const;

  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  void visit_functions(const FunctionVisitor& visitor) override;
  void visit_persistents(const PersistentVisitor& visitor, const std::string& prefix = "") override;

 private:
  Sequence* model_;
  int begin_, end_;
};

class Stage {
 public:
  Stage(const UnitRange& units, Device device, bool recomputes)
      : units_(units), device_(device), recomputes_(recomputes) {}

  UnitRange& units() { return units_; }
  Device device() const { return device_; }

  // Forgets all micro-batches, and makes room for so many.
  void begin_step(int micro_batches);
  // The results of a micro-batch. Gradients of those inputs are wanted that `info` says; null: of
  // none. Under NoBackprop nothing is kept.
  Variables forward(int micro_batch, const Arrays& inputs, const MessageInfo* info,
                    const UnitNumbers& numbers);
  // A forward that nothing is kept of and that moves nothing, for the shapes of its results.
  Variables try_out(const Variables& inputs, const UnitNumbers& numbers) const;

  // What comes back to the stage goes through its units; with `split` the gradients of the weights
  // are left to backward_weights. Undefined gradients count as zero. Afterwards the gradients of
  // the inputs, undefined for those that are not wanted.
  Arrays backward(int micro_batch, const Variables& results, const Arrays& gradients, bool split);
  // The results of a micro-batch, once.
  Variables take_results(int micro_batch);
  // What backward has left, and whether it has.
  void backward_weights(int micro_batch);
  bool is_split(int micro_batch) const { return batches_[size_t(micro_batch)].is_split; }

 private:
  struct MicroBatch {
    Variables inputs, results;
    DeferredWeights later;
    bool is_split = false;  // its kBackwardInputs has run
  };
  UnitRange units_;
  Device device_;
  bool recomputes_;
  std::vector<MicroBatch> batches_;
};

}  // namespace catena::parallel::pipeline
