// What the ranks of a GradientReducer compare: options and models in setup, values and states now
// and then, and what travels with the sums of each step.
#include <algorithm>
#include <utility>

#include "catena/core/graph.h"
#include "catena/parallel/gradient_reducer.h"
#include "core/text_hash.h"
#include "equal_options.h"
#include "equal_states.h"
#include "rank_difference.h"
#include "step_agreement.h"

namespace catena::parallel {

// Setup -------------------------------------------------------------------------------------------

void GradientReducer::check_options() {
  if (std::exchange(options_checked_, true)) return;
  check_equal_options(comm_, options_, "setup");
}

// Compares the models of all ranks and names the first difference.
void GradientReducer::check_structure() const {
  std::string text = optimizer_->layout().structure();
  for (const auto& [path, p] : optimizer_->persistents())
    text += message(path, " ", p.shape(), " ", p.dtype(), ", ", catena::name(p.over_ranks()),
                    " over ranks\n");
  const std::vector<uint64_t> hashes = comm_.all_gather_object(text_hash(text));
  if (std::all_of(hashes.begin(), hashes.end(), [&](uint64_t h) { return h == hashes[0]; })) return;
  const std::vector<RankGroup> groups = first_difference(comm_.all_gather_bytes(text));
  const auto shown = [](const RankGroup& group) {
    return group.line.empty() ? "no more parameters" : group.line;
  };
  fail_for_difference(
      comm_, groups,
      message("setup: the ranks have different models; the first difference is: rank 0 has ",
              shown(groups[0]), ", rank ", groups[1].ranks[0], " has ", shown(groups[1])));
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
  if (weighted_) agreement.set_shares(n_local_, n_global_);
  agreement.set_order(order_);
  agreement.set_rate(optimizer_->lr());
}

// A graph has recorded what the batch weight was good for.
void GradientReducer::check_replayed_weight(bool weighted, double weight) const {
  CATENA_CHECK(ValueError, weighted_ == weighted,
               "Graph::launch: the step was captured before set_batch_weight was called, and takes "
               "the plain mean over the ranks; call it before Graph::capture");
  CATENA_CHECK(ValueError, weight != 0 || weight_ == 0,
               "Graph::launch: the step was captured when this rank had no samples "
               "(set_batch_weight(0, ...)), and ignores its gradients; capture it with samples");
}

}  // namespace catena::parallel
