// Comparison of the ranks of a data-parallel optimizer: options and models in setup, values and
// states now and then, and what travels with the sums of each step.
#pragma once

#include <cstdint>
#include <memory>

#include "bucket_exchange.h"
#include "catena/parallel/batch_order.h"
#include "step_agreement.h"

namespace catena::parallel {

// Collective calls are those that say so. Errors are ValueError on all ranks.
class StateComparison {
 public:
  StateComparison(Communicator& comm, const BucketOptions& options)
      : comm_(comm), options_(options) {}

  // Collective at the first call: whether all ranks give the same options.
  void check_options();
  // Collective: whether they have the same models.
  void check_structure(const optimizers::ArenaSet& layout,
                       const NamedPersistents& persistents) const;
  // Collective, at the end of setup.
  void after_setup(Optimizer& optimizer, int number);
  // Collective: see MultiNodeOptimizer::check_state.
  void check_state(const char* who);

  // Ranks that spread parameters compare them before the next update (with kParameters in the next
  // zero_grads), since somebody may write to them until then.
  void compare_next() { compare_values_ = true; }
  // Collective where that was asked for.
  void compare_values(const char* who);
  // Updates since setup.
  int64_t updates() const { return updates_; }
  // After an update. Collective now and then, when it also checks the slices, which may be null.
  void after_update(SliceRun* slices);

  // What the ranks must agree on in a step.
  struct Facts {
    BatchShare share;
    BatchOrder order;
    double first_samples = 0;
  };
  // The facts at a launch of a graph, which holds the step from which this was called, too.
  using FactsNow = std::function<Facts()>;
  // A step begins. Not null if this is to travel with its first bucket. Captured steps are counted
  // by the launches of their graph.
  StepAgreement* begin_step(const FactsNow& facts);

 private:
  void note(StepAgreement& agreement, const Facts& facts) const;
  void bring_values() const;

  Communicator& comm_;
  const BucketOptions options_;
  bool options_checked_ = false;
  Optimizer* optimizer_ = nullptr;
  int64_t updates_ = 0;
  std::shared_ptr<StepAgreement> agreement_;
  uint64_t capture_ = 0;         // the last graph capture with a step of this optimizer
  bool compare_ = false;         // states, after the next update that is not captured
  bool compare_values_ = false;  // of spread parameters, before they are in parts again
};

// DeviceError for an arena that is not on the communicator's device.
void check_devices(const Communicator& comm, const optimizers::ArenaSet& layout);

}  // namespace catena::parallel
