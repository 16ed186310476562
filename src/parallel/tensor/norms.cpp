#include "catena/parallel/tensor/norms.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/comm/internals.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/parallel/tensor/embed_id.h"
#include "catena/parallel/tensor/linear.h"
#include "optimizers/arena_sums.h"
#include "slice_squares.h"
#include "start_values.h"

namespace catena::parallel {
namespace {

void add_slices(Parameterized& part, Parameters& found) {
  if (const auto* column = dynamic_cast<ColumnParallelLinear*>(&part)) {
    found.push_back(column->W);
    if (column->b.defined()) found.push_back(column->b);
  } else if (const auto* row = dynamic_cast<RowParallelLinear*>(&part)) {
    found.push_back(row->W);
  } else if (const auto* ids = dynamic_cast<VocabParallelEmbedID*>(&part)) {
    found.push_back(ids->W);
  }
  part.visit_functions([&](const std::string&, Parameterized& inner) { add_slices(inner, found); });
}

// Sums norms over ranks.
class SharedNorms final : public optimizers::UpdateStage {
 public:
  SharedNorms(CommunicatorPtr comm, const Parameters& sliced)
      : comm_(std::move(comm)), squares_(*comm_, sliced) {
    for (const Parameter& parameter : sliced) sliced_.insert(parameter.state());
  }
  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kUnscale; }
  const char* name() const override { return "shared norms"; }
  void run(optimizers::UpdateContext& update) override { optimizer_ = &update.optimizer(); }
  void after_setup(Optimizer& optimizer) override {
    optimizer_ = &optimizer;
    squares_.after_setup(optimizer);
  }
  void prepare_for_capture(Optimizer& optimizer) override { squares_.prepare(optimizer); }
  void finish_squares(Optimizer& optimizer, const Arrays& squares) override {
    squares_.sum(optimizer, squares);
  }

  // `total` may have factors that the gradients in memory do not have. So it is multiplied by this
  // rank's share of the sum: its slices, and its part of what is whole.
  void finish_norm(const Array& total) override {
    const Squares own = squares_on(total.device());
    const Array all = add(own.slices, own.wholes);
    const Array shared = add(own.slices, divide(own.wholes, double(comm_->size())));
    const double least = std::numeric_limits<double>::min();
    total.assign(multiply(total, divide(shared, maximum(all, least))));
    const comm::PurposeScope purpose(comm_.get(), "share_norms");
    comm_->all_reduce(total, comm::Reduction::kSum, total);
  }

 private:
  struct Squares {
    Array slices, wholes;  // 0-d float64
  };

  Squares squares_on(Device device) const {
    const DeviceScope scope(device);
    Squares result{zeros(Shape{}, {Dtype::kFloat64, device}),
                   zeros(Shape{}, {Dtype::kFloat64, device})};
    for (const auto& arena : optimizer_->layout().arenas()) {
      for (const auto& slot : arena.slots()) {
        const optimizers::Block& block = arena.gradient();
        const auto here = intersection({slot.offset, slot.offset + slot.size}, block.covers);
        if (here.size() == 0 || optimizer_->is_frozen(slot.parameter)) continue;
        const Array squares =
            optimizers::sum_of_squares(block.part(here)).astype(Dtype::kFloat64, false).to(device);
        Array& sum = sliced_.contains(slot.parameter.state()) ? result.slices : result.wholes;
        sum = add(sum, squares);
      }
    }
    return result;
  }

  CommunicatorPtr comm_;
  SliceSquares squares_;
  std::set<const ParameterState*> sliced_;
  Optimizer* optimizer_ = nullptr;
};

// Runs behind the loss scale, which has written what it found.
class SharedOverflows final : public optimizers::UpdateStage {
 public:
  explicit SharedOverflows(CommunicatorPtr comm) : comm_(std::move(comm)) {}
  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kUnscale; }
  const char* name() const override { return "shared overflows"; }
  void run(optimizers::UpdateContext& update) override {
    const comm::PurposeScope purpose(comm_.get(), "share_overflows");
    Array before;  // arenas of one device have one flag
    for (size_t a = 0; a < update.optimizer().layout().arenas().size(); ++a) {
      const Array found = update.skip_flag(a);
      if (!found.defined() || (before.defined() && before.raw_data() == found.raw_data())) continue;
      comm_->all_reduce(found, comm::Reduction::kMax, found);
      before = found;
    }
  }

 private:
  CommunicatorPtr comm_;
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
  add_slices(model, found);
  return found;
}

void share_norms(Optimizer& optimizer, Parameterized& model, Communicator& tensor,
                 const Parameters& sliced) {
  CATENA_CHECK(ValueError, !has_stage_of<SharedNorms>(optimizer),
               "share_norms: the optimizer shares its norms already; call it once");
  Parameters all = sliced_parameters(model);
  all.insert(all.end(), sliced.begin(), sliced.end());
  optimizer.add_stage(std::make_shared<SharedNorms>(kept_communicator("share_norms", tensor), all));
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
