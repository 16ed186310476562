#include "parallel/pipeline/updates.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/grad_mode.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/parallel/tensor/norms.h"
#include "optimizers/arena_sums.h"
#include "parallel/tensor/slice_squares.h"

namespace catena::parallel::pipeline {

// The stage of each optimizer's updates that brings in the norm of all stages.
class NormStage final : public optimizers::UpdateStage {
 public:
  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kUnscale; }
  const char* name() const override { return "pipeline norm"; }
  void set_factor(const Array& factor) { factor_ = factor; }
  void run(optimizers::UpdateContext& update) override {
    if (!factor_.defined()) return;
    Arrays factors;
    for (const auto& arena : update.optimizer().layout().arenas())
      factors.push_back(factor_.to(arena.device()));
    update.scale_gradients(factors);
  }
  void finish_norm(const Array&) override {
    fail<ValueError>(
        "Pipeline: the norm of one stage's gradients is not that of the model's; to clip by the "
        "norm over all stages set PipelineOptions::clip_norm, and leave gradient_clipping out of "
        "the stages' optimizers");
  }

  // Of tensor ranks.
  void share_squares(Communicator& tensor, const Parameters& sliced) {
    squares_.emplace(tensor, sliced);
  }
  void after_setup(Optimizer& optimizer) override {
    if (squares_) squares_->after_setup(optimizer);
  }
  void prepare_for_capture(Optimizer& optimizer) override {
    if (squares_) squares_->prepare(optimizer);
  }
  void finish_squares(Optimizer& optimizer, const Arrays& squares) override {
    if (squares_) squares_->sum(optimizer, squares);
  }

 private:
  Array factor_;  // 0-d float64
  std::optional<SliceSquares> squares_;
};

Updates::Updates(Sequence& model, double clip_norm, Communicator* comm, Communicator* data,
                 Communicator* tensor, const Parameters& sliced)
    : model_(model),
      clip_norm_(clip_norm),
      comm_(comm),
      data_(data),
      tensor_(tensor != nullptr && tensor->size() > 1 ? tensor : nullptr),
      sliced_(sliced),
      norm_(std::make_shared<NormStage>()) {
  CATENA_CHECK(ValueError, clip_norm >= 0 && std::isfinite(clip_norm),
               "Pipeline: expected a clip_norm of at least 0, got ", clip_norm);
}
Updates::~Updates() = default;

// Setup -------------------------------------------------------------------------------------------

void Updates::add_stage(int stage, UnitRange& units, std::unique_ptr<Optimizer> optimizer,
                        const BucketOptions& buckets) {
  Member member{stage, std::move(optimizer), nullptr, units.device()};
  member.optimizer->add_stage(norm_);
  if (data_ && data_->size() > 1)
    member.reducer =
        member.optimizer->add_stage(std::make_shared<GradientReducer>(*data_, buckets));
  member.optimizer->setup(units);
  members_.push_back(std::move(member));
}

void Updates::finish_setup(const std::vector<Sequence::Tie>& ties,
                           const std::vector<std::vector<int>>& owners) {
  ties_ = ties;
  owners_ = owners;
  has_loss_scale_ = check_loss_scales();
  if (has_loss_scale_) expect_scaled();
  defers_ = has_loss_scale_ || clip_norm_ > 0 || !ties.empty();
  number_parameters(ties);
  number_slices();
  share_tied_values();
}

namespace {

using optimizers::DynamicLossScale;
using optimizers::LossScaleOptions;

// How a stage's rule scales the loss.
struct ScaleOfStage {
  int stage = 0;
  bool has = false;
  LossScaleOptions options = {};

  auto numbers() const {
    const LossScaleOptions& o = options;
    return std::tuple(has, o.initial, o.growth, o.backoff, double(o.interval), o.least, o.most);
  }
  std::string text() const {
    return has ? message("a loss scale that begins with ", options.initial) : "no loss scale";
  }
};

}  // namespace

// Collective: whether the rules have a loss scale. The last stage's multiplies the loss and each
// stage's own divides its gradients, so all must be equal in every step.
bool Updates::check_loss_scales() const {
  std::vector<ScaleOfStage> scales;
  for (const Member& member : members_) {
    ScaleOfStage& one = scales.emplace_back(ScaleOfStage{member.stage});
    for (const auto& stage : member.optimizer->stages())
      if (const auto* scale = dynamic_cast<const DynamicLossScale*>(stage.get())) {
        one.has = true;
        one.options = scale->options();
      }
  }
  if (comm_) {
    std::vector<ScaleOfStage> all;
    for (const auto& of_rank : comm_->all_gather_object(scales))
      all.insert(all.end(), of_rank.begin(), of_rank.end());
    scales = std::move(all);
  }
  for (const ScaleOfStage& one : scales)
    CATENA_CHECK(ValueError, one.numbers() == scales[0].numbers(),
                 "Pipeline::setup: the rule of stage ", scales[0].stage, " has ", scales[0].text(),
                 ", that of stage ", one.stage, " ", one.text(),
                 "; give the rules of all stages add_loss_scale with the same options, "
                 "or none of them");
  return !scales.empty() && scales[0].has;
}

// The loss is scaled once, by the last stage's optimizer; the others must not warn that it is not.
void Updates::expect_scaled() {
  const NoBackprop off;
  for (const Member& member : members_) {
    const Device device = member.optimizer->parameters().front().device();
    member.optimizer->scaled(Variable::constant(zeros({}, {Dtype::kFloat32, device})));
  }
}

// Tied weights count once in norms, by their first copy.
void Updates::number_parameters(const std::vector<Sequence::Tie>& ties) {
  std::unordered_set<const ParameterState*> copies;
  for (const Sequence::Tie& tie : ties)
    for (size_t i = 1; i < tie.size(); ++i) copies.insert(tie[i].second.state());
  numbers_.clear();
  model_.visit_parameters([&](const std::string&, Parameter& p) {
    if (p.defined() && copies.count(p.state()) == 0)
      numbers_.try_emplace(p.state(), static_cast<int64_t>(numbers_.size()));
  });
}

// Of the tensor ranks each counts its slices, and the first what all have whole.
void Updates::number_slices() {
  if (!tensor_) return;
  std::vector<double> counts(numbers_.size(), tensor_->rank() == 0 ? 1 : 0);
  Parameters slices = sliced_parameters(model_);
  slices.insert(slices.end(), sliced_.begin(), sliced_.end());
  norm_->share_squares(*tensor_, slices);
  for (const Parameter& p : slices)
    if (const auto number = numbers_.find(p.state()); number != numbers_.end())
      counts[size_t(number->second)] = 1;
  counts_here_ = array(counts, {int64_t(counts.size())}, tensor_->device());
}

Updates::Member* Updates::find(int stage) {
  for (Member& member : members_)
    if (member.stage == stage) return &member;
  return nullptr;
}

Optimizer* Updates::optimizer(int stage) const {
  for (const Member& member : members_)
    if (member.stage == stage) return member.optimizer.get();
  return nullptr;
}

Variable Updates::scaled(const Variable& loss) const {
  return has_loss_scale_ && !members_.empty() ? members_.back().optimizer->scaled(loss) : loss;
}

void Updates::set_batch_weight(int64_t n_local, int64_t n_global) {
  for (Member& member : members_)
    if (member.reducer) member.reducer->set_batch_weight(n_local, n_global);
}

void Updates::prepare_for_capture() {
  for (Member& member : members_) member.optimizer->prepare_for_capture();
}

// Steps -------------------------------------------------------------------------------------------

void Updates::begin_step() {
  norm_->set_factor({});
  for (Member& member : members_) {
    const Device now = member.optimizer->parameters().front().device();
    CATENA_CHECK(
        DeviceError, now == member.device, "Pipeline::step: the parameters of stage ", member.stage,
        " are on ", now, ", where setup has put them on ", member.device,
        "; was the model moved since, or set up in another pipeline? Move it back, or make "
        "a new pipeline");
    member.reduced = member.update_later = false;
    member.optimizer->zero_grads();
  }
}

void Updates::reduce(int stage) {
  Member* member = find(stage);
  if (!member || !member->reducer) return;
  member->reducer->gradients_are_final();
  member->reduced = true;
}

void Updates::update(int stage) {
  Member* member = find(stage);
  if (!member) return;
  if (defers_)
    member->update_later = true;
  else
    member->optimizer->update();
}

void Updates::finish_step(bool updates) {
  if (!defers_) return;
  for (Member& member : members_) {
    optimizers::UpdateContext update(*member.optimizer);
    if (member.reducer && (member.reduced || updates)) member.reducer->run(update);
    member.optimizer->layout().settle_gradients();
  }
  sum_tied();
  if (updates && (has_loss_scale_ || clip_norm_ > 0)) {
    const Array total = sum_of_squares();
    if (has_loss_scale_) poison(total);
    if (clip_norm_ > 0) norm_->set_factor(fmin(multiply(rsqrt(total), clip_norm_), 1.0));
  }
  for (Member& member : members_)
    if (member.update_later) member.optimizer->update();
}

// The norm of all stages --------------------------------------------------------------------------

// A sum for each parameter of the model, so that the total has one order, whatever the cut.
Array Updates::squares_on(Device device, const std::vector<Member*>& members) const {
  const DeviceScope scope(device);
  Array squares = zeros({static_cast<int64_t>(numbers_.size())}, {Dtype::kFloat64, device});
  for (const Member* member : members) {
    for (const auto& arena : member->optimizer->layout().arenas()) {
      for (const auto& slot : arena.slots()) {
        const auto number = numbers_.find(slot.parameter.state());
        if (number == numbers_.end() || slot.size == 0) continue;
        const Array part = arena.gradient().part({slot.offset, slot.offset + slot.size});
        squares(Slice(number->second, number->second + 1))
            .assign(optimizers::sum_of_squares(part).reshape({1}));
      }
    }
    for (const auto& stage : member->optimizer->stages())
      if (const Array factor = stage->gradient_factor(device); factor.defined())
        squares = multiply(squares, square(factor));
  }
  return squares;
}

Array Updates::sum_of_squares() {
  Array total;
  for (Member& first : members_) {  // each device once
    const Device device = first.optimizer->parameters().front().device();
    std::vector<Member*> there;
    for (Member& other : members_)
      if (other.optimizer->parameters().front().device() == device) there.push_back(&other);
    if (there.front() != &first) continue;
    const Array squares = squares_on(device, there);
    total = total.defined() ? catena::add(total, squares.to(total.device())) : squares;
  }
  if (comm_) {
    if (!total.defined())
      total = zeros({static_cast<int64_t>(numbers_.size())}, {Dtype::kFloat64, comm_->device()});
    comm_->all_reduce(total, comm::Reduction::kSum, total);
  }
  if (tensor_) {
    total = multiply(total, counts_here_);
    tensor_->all_reduce(total, comm::Reduction::kSum, total);
  }
  return sum(total);
}

// If the gradients of any stage are not finite, those of all others are not either, so that every
// loss scale skips the update and falls.
void Updates::poison(const Array& total) {
  const Array nothing = multiply(total, 0.0);  // or not a number
  for (Member& member : members_) {
    for (const auto& arena : member.optimizer->layout().arenas()) {
      if (arena.size() == 0) continue;
      const Array first = arena.gradient().memory(Slice(0, 1));
      catena::add(first, nothing.to(arena.device()).astype(first.dtype(), false), first);
    }
  }
}

// Tied weights ------------------------------------------------------------------------------------

bool Updates::is_here(int rank) const { return comm_ == nullptr || comm_->rank() == rank; }

void Updates::sum_tied() {
  for (size_t k = 0; k < ties_.size(); ++k) {
    add_tied(ties_[k], owners_[k]);
    spread(ties_[k], owners_[k], true);
  }
}

void Updates::share_tied_values() {
  for (size_t k = 0; k < ties_.size(); ++k) spread(ties_[k], owners_[k], false);
}

// In the order of the units, into the first copy.
void Updates::add_tied(const Sequence::Tie& tie, const std::vector<int>& owners) {
  const Parameter& home = tie[0].second;
  for (size_t i = 1; i < tie.size(); ++i) {
    const Parameter& other = tie[i].second;
    const bool home_is_here = is_here(owners[0]), other_is_here = is_here(owners[i]);
    if (home_is_here && other_is_here) {
      home.accumulate_grad(other.grad());
    } else if (other_is_here) {
      comm_->send(other.grad(), owners[0]);
    } else if (home_is_here) {
      const Array received = Array::uninitialized(home.shape(), home.dtype(), comm_->device());
      comm_->recv(received, owners[i]);
      home.accumulate_grad(received);
    }
  }
}

// Gradients or values of the first copy to the others.
void Updates::spread(const Sequence::Tie& tie, const std::vector<int>& owners, bool gradients) {
  const Parameter& home = tie[0].second;
  const auto source = [&] { return gradients ? home.grad() : home.data(); };
  for (size_t i = 1; i < tie.size(); ++i) {
    const Parameter& other = tie[i].second;
    const bool home_is_here = is_here(owners[0]), other_is_here = is_here(owners[i]);
    if (!home_is_here && !other_is_here) continue;
    if (!other_is_here) {
      comm_->send(source(), owners[i]);
      continue;
    }
    Array values;
    if (home_is_here) {
      values = source();
    } else {
      values = Array::uninitialized(other.shape(), other.dtype(), comm_->device());
      comm_->recv(values, owners[0]);
    }
    gradients ? other.set_grad(values) : other.copy_from(values);
  }
}

}  // namespace catena::parallel::pipeline
