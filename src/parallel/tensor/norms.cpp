#include "catena/parallel/tensor/norms.h"

#include <algorithm>
#include <memory>

#include "catena/autograd/placement.h"
#include "catena/optimizers/loss_scale.h"
#include "slices.h"
#include "start_values.h"

namespace catena::parallel {
namespace {

using optimizers::Processes;

// Ranks that have slices of one model's parameters, for sums over them.
class SliceRanks : public optimizers::UpdateStage, public Processes {
 public:
  explicit SliceRanks(CommunicatorPtr comm) : comm_(std::move(comm)) {}
  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kUnscale; }
  bool reads_gradients(const Optimizer&) const override { return false; }
  void run(optimizers::UpdateContext&) override {}
  Processes* processes() override { return this; }

 protected:
  void add_up(const Arrays& arrays, const char* purpose) {
    if (comm_->size() > 1) sum_over_ranks(*comm_, arrays, purpose);
  }
  CommunicatorPtr comm_;
};

class SharedNorms final : public SliceRanks {
 public:
  using SliceRanks::SliceRanks;
  const char* name() const override { return "shared norms"; }
  double weight_of(const Parameter& parameter) const override {
    return weight_over(*comm_, parameter);
  }
  void sum(const Arrays& arrays, Sum of) override {
    if (of == Sum::kNorm || of == Sum::kSquares) add_up(arrays, "share_norms");
  }
};

class SharedOverflows final : public SliceRanks {
 public:
  using SliceRanks::SliceRanks;
  const char* name() const override { return "shared overflows"; }
  void sum(const Arrays& arrays, Sum of) override {
    if (of == Sum::kFound) add_up(arrays, "share_overflows");
  }
};

template <class Stage>
bool has_stage_of(const Optimizer& optimizer) {
  const auto& stages = optimizer.stages();
  return std::any_of(stages.begin(), stages.end(), [](const auto& stage) {
    return dynamic_cast<const Stage*>(stage.get()) != nullptr;
  });
}

}  // namespace

Parameters sliced_parameters(Parameterized& model) {
  Parameters found;
  for (const Parameter& p : model.parameters())
    if (p.placement() != nullptr && p.placement()->is_cut()) found.push_back(p);
  return found;
}

void share_norms(Optimizer& optimizer, Parameterized&, Communicator& tensor,
                 const Parameters& sliced) {
  CATENA_CHECK(ValueError, !has_stage_of<SharedNorms>(optimizer),
               "share_norms: the optimizer shares its norms already; call it once");
  for (const Parameter& p : sliced) place_as_cut(p, tensor);
  optimizer.add_stage(std::make_shared<SharedNorms>(kept_communicator("share_norms", tensor)));
}

void share_overflows(Optimizer& optimizer, Communicator& tensor) {
  constexpr const char* kWho = "share_overflows";
  CATENA_CHECK(ValueError, has_stage_of<optimizers::DynamicLossScale>(optimizer), kWho,
               ": the optimizer has no loss scale; call add_loss_scale(optimizer) first");
  CATENA_CHECK(ValueError, !has_stage_of<SharedOverflows>(optimizer), kWho,
               ": the optimizer shares its overflows already; call it once");
  optimizer.add_stage(std::make_shared<SharedOverflows>(kept_communicator(kWho, tensor)));
}

}  // namespace catena::parallel
