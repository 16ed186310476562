#include "state_comparison.h"

#include <algorithm>
#include <utility>

#include "catena/autograd/placement.h"
#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "catena/parallel/tensor/placement.h"
#include "equal_states.h"
#include "setup_agreement.h"
#include "slice_run.h"

namespace catena::parallel {
namespace {

constexpr int64_t kUpdatesBetweenChecks = 64;

}  // namespace

// Setup -------------------------------------------------------------------------------------------

void StateComparison::check_options() {
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
void StateComparison::check_structure(const optimizers::ArenaSet& layout,
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

void check_devices(const Communicator& comm, const optimizers::ArenaSet& layout) {
  for (const auto& arena : layout.arenas()) {
    CATENA_CHECK(DeviceError, arena.device() == comm.device(), "multi-node optimizer: parameter '",
                 layout.name(size_t(arena.slots()[0].index)), "' is on ", arena.device(),
                 ", this rank's communicator on ", comm.device(),
                 "; move the model with model.to(comm.device())");
  }
}

void StateComparison::after_setup(Optimizer& optimizer, int number) {
  optimizer_ = &optimizer;
  updates_ = 0;
  agreement_ = std::make_shared<StepAgreement>(comm_, number);
  compare_ = compare_values_ = true;
  check_equal_states(comm_, optimizer, "setup");
}

// Values and states -------------------------------------------------------------------------------

// Values that are spread are gathered from the ranks that keep them: what one rank has written to
// the others is gone then, and no later comparison sees it.
void StateComparison::compare_values(const char* who) {
  if (!compare_values_ || cuda::is_capturing(comm_.device())) return;
  compare_values_ = false;
  if (!optimizer_->is_sharded()) return;
  bring_values();
  check_state(who);
}

// On one rank others may have come already than on another, by uses or because they are kept. All
// ranks compare the same. Units are used in one order by all, so that the same ones are here.
void StateComparison::bring_values() const {
  if (options_.sharding == Sharding::kParameters) return;
  for (const Parameter& p : optimizer_->layout().parameters()) p.data();
}

void StateComparison::check_state(const char* who) {
  CATENA_CHECK(ValueError, optimizer_ != nullptr, who,
               ": the optimizer is not set up; call setup(model) first");
  check_equal_states(comm_, *optimizer_, who);
}

// Steps -------------------------------------------------------------------------------------------

void StateComparison::note(StepAgreement& agreement, const Facts& facts) const {
  if (facts.share.is_given()) agreement.set_shares(facts.share.local, facts.share.global);
  agreement.set_order(facts.order);
  agreement.set_first(facts.first_samples);
  agreement.set_rate(optimizer_->lr());
}

namespace {

// A graph has recorded what the batch weight was good for.
void check_replayed_share(const BatchShare& now, const BatchShare& captured) {
  CATENA_CHECK(ValueError, now.is_given() == captured.is_given(),
               "Graph::launch: the step was captured before set_batch_weight was called, and takes "
               "the plain mean over the ranks; call it before Graph::capture");
  CATENA_CHECK(ValueError, captured.weight() != 0 || now.weight() == 0,
               "Graph::launch: the step was captured when this rank had no samples "
               "(set_batch_weight(0, ...)), and ignores its gradients; capture it with samples");
}

}  // namespace

StepAgreement* StateComparison::begin_step(const FactsNow& facts) {
  const Facts now = facts();
  note(*agreement_, now);
  const uint64_t capture = comm_.device().is_cuda() ? cuda::capture_id() : 0;
  if (capture == 0) return agreement_->begin_step(updates_) ? agreement_.get() : nullptr;
  if (std::exchange(capture_, capture) == capture) return nullptr;
  cuda::add_launch_hook(
      [this, weak = std::weak_ptr<StepAgreement>(agreement_), captured = now.share, facts] {
        const std::shared_ptr<StepAgreement> agreement = weak.lock();
        if (!agreement) return;
        const Facts at_launch = facts();
        check_replayed_share(at_launch.share, captured);
        note(*agreement, at_launch);
        agreement->replay_step(updates_);
      });
  return nullptr;
}

void StateComparison::after_update(SliceRun* slices) {
  comm::internals(comm_).set_updates(updates_ + 1);
  if (++updates_ % kUpdatesBetweenChecks == 0) compare_ = true;
  if (!compare_ || cuda::is_capturing(comm_.device())) return;
  compare_ = false;
  agreement_->check();
  comm_.check();
  if (slices) slices->check();
  bring_values();
  check_equal_states(comm_, *optimizer_, "update", true);
}

}  // namespace catena::parallel
