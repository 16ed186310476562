// What the ranks of a GradientReducer compare: options and models in setup, values and states now
// and then, and what travels with the sums of each step.
#include <algorithm>
#include <utility>

#include "catena/autograd/placement.h"
#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "catena/parallel/gradient_reducer.h"
#include "catena/parallel/tensor/placement.h"
#include "equal_states.h"
#include "loss_weight.h"
#include "setup_agreement.h"
#include "step_agreement.h"

namespace catena::parallel {

// Setup -------------------------------------------------------------------------------------------

void GradientReducer::check_options() {
  if (std::exchange(options_checked_, true)) return;
  const comm::PurposeScope purpose(&comm_, "setup");
  comm::Agreement agreement;
  add_options(agreement, options_);
  if (const auto difference = agreement.compare(comm_))
    difference->fail(comm_,
                     message("setup: the ranks give different BucketOptions: ", difference->text(),
                             "; give the multi-node optimizers of all ranks the same "
                             "options"));
}

namespace {

// Whether one of the axes, "expert" or "data+expert", is among those of the communicator.
bool shares_an_axis(const Communicator& comm, const std::string& mesh_axis) {
  const std::vector<std::string> cut = axes_of(mesh_axis);
  const std::vector<std::string>& names = comm.axis().names;
  return std::find_first_of(cut.begin(), cut.end(), names.begin(), names.end()) != cut.end();
}

// Ranks that average have the same parameters: rank 0's values would replace the others' pieces.
void refuse_pieces(const Communicator& comm, const std::string& path, const Parameter& p) {
  if (p.placement() == nullptr) return;
  for (const Placement::Over& over : p.placement()->over)
    CATENA_CHECK(ValueError,
                 over.kind != Placement::Kind::kCut || over.count == 1 || over.mesh_axis.empty() ||
                     !shares_an_axis(comm, over.mesh_axis),
                 "setup: parameter '", path, "' is cut along '", over.mesh_axis,
                 "', and this optimizer averages over '", comm.axis().text(),
                 "', where all ranks must have the same piece; give such parameters an optimizer "
                 "of their own that averages over the other axes of the batch");
}

}  // namespace

// Compares the models of all ranks.
void GradientReducer::check_structure(const optimizers::ArenaSet& layout,
                                      const NamedPersistents& persistents) const {
  for (size_t i = 0; i < layout.parameters().size(); ++i)
    refuse_pieces(comm_, layout.name(i), layout.parameters()[i]);
  comm::Agreement agreement;
  for (size_t i = 0; i < layout.parameters().size(); ++i)
    add_parameter(agreement, layout.name(i), layout.parameters()[i]);
  for (const auto& [path, p] : persistents) add_persistent(agreement, path, p);
  if (const auto difference = agreement.compare(comm_))
    difference->fail(comm_, message("setup: the ranks have different models: ", difference->text(),
                                    "; make the same model on all ranks"));
}

void GradientReducer::check_devices(const optimizers::ArenaSet& layout) const {
  for (const auto& arena : layout.arenas()) {
    CATENA_CHECK(DeviceError, arena.device() == comm_.device(), "multi-node optimizer: parameter '",
                 layout.name(size_t(arena.slots()[0].index)), "' is on ", arena.device(),
                 ", this rank's communicator on ", comm_.device(),
                 "; move the model with model.to(comm.device())");
  }
}

// Values and states -------------------------------------------------------------------------------

// Values that are spread are gathered from the ranks that keep them: what one rank has written to
// the others is gone then, and no later comparison sees it.
void GradientReducer::compare_values(const char* who) {
  if (!compare_values_ || cuda::is_capturing(comm_.device())) return;
  compare_values_ = false;
  if (!optimizer_->is_sharded()) return;
  bring_values();
  check_state(who);
}

// On one rank others may have come already than on another, by uses or because they are kept. All
// ranks compare the same. Units are used in one order by all, so that the same ones are here.
void GradientReducer::bring_values() const {
  if (options_.sharding == Sharding::kParameters) return;
  for (const Parameter& p : optimizer_->layout().parameters()) p.data();
}

void GradientReducer::check_state(const char* who) {
  CATENA_CHECK(ValueError, optimizer_ != nullptr, who,
               ": the optimizer is not set up; call setup(model) first");
  check_equal_states(comm_, *optimizer_, who);
}

// Steps -------------------------------------------------------------------------------------------

// Writes down what the ranks must agree on in this step.
void GradientReducer::note_facts(StepAgreement& agreement) const {
  if (share_.is_given()) agreement.set_shares(share_.local, share_.global);
  agreement.set_order(order_);
  agreement.set_first(losses_->first_samples());
  agreement.set_rate(optimizer_->lr());
}

// A graph has recorded what the batch weight was good for.
void GradientReducer::check_replayed_share(const Share& captured) const {
  CATENA_CHECK(ValueError, share_.is_given() == captured.is_given(),
               "Graph::launch: the step was captured before set_batch_weight was called, and takes "
               "the plain mean over the ranks; call it before Graph::capture");
  CATENA_CHECK(ValueError, captured.weight() != 0 || share_.weight() == 0,
               "Graph::launch: the step was captured when this rank had no samples "
               "(set_batch_weight(0, ...)), and ignores its gradients; capture it with samples");
}

}  // namespace catena::parallel
