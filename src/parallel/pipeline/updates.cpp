#include "parallel/pipeline/updates.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_set>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/placement.h"
#include "catena/optimizers/loss_scale.h"
#include "optimizers/arena_sums.h"
#include "parallel/tensor/slices.h"

namespace catena::parallel::pipeline {

// What all stages find together, brought into the updates of each: the norm, an overflow, and the
// sums over the ranks that share its layers.
class StepStage final : public optimizers::UpdateStage, public optimizers::Processes {
 public:
  explicit StepStage(Communicator* tensor) : tensor_(tensor) {}
  void set_cuts(const optimizers::ArenaCuts& cuts) { cuts_ = cuts; }
  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kUnscale; }
  const char* name() const override { return "pipeline norm"; }
  Processes* processes() override { return this; }
  // 0-d float64; undefined: none.
  void set_factor(const Array& factor) { factor_ = factor; }
  void set_found(const Array& found) { found_ = found; }

  optimizers::ArenaCuts cuts() const override { return cuts_; }
  void run(optimizers::UpdateContext& update) override { scale_all(update, factor_); }
  double weight_of(const Parameter& parameter) const override {
    return tensor_ == nullptr ? 1 : weight_over(*tensor_, parameter);
  }
  void sum(const Arrays& arrays, Sum of) override {
    CATENA_CHECK(
        ValueError, of != Sum::kNorm,
        "Pipeline: the norm of one stage's gradients is not that of the model's; to clip by the "
        "norm over all stages set PipelineOptions::clip_norm, and leave gradient_clipping out of "
        "the stages' optimizers");
    if (of == Sum::kSquares && tensor_ != nullptr)
      sum_over_ranks(*tensor_, arrays, "norms of slices");
    if (of == Sum::kFound && found_.defined())
      for (const Array& one : arrays) catena::add(one, found_.to(one.device()), one);
  }

 private:
  Communicator* tensor_;
  optimizers::ArenaCuts cuts_;
  Array factor_, found_;
};

Updates::Updates(Sequence& model, double clip_norm, Communicator* comm,
                 const std::optional<BatchRanks>& replicas, Communicator* tensor)
    : model_(model),
      clip_norm_(clip_norm),
      comm_(comm),
      replicas_(replicas),
      tensor_(tensor != nullptr && tensor->size() > 1 ? tensor : nullptr),
      together_(std::make_shared<StepStage>(tensor_)) {
  CATENA_CHECK(ValueError, clip_norm >= 0 && std::isfinite(clip_norm),
               "Pipeline: expected a clip_norm of at least 0, got ", clip_norm);
}
Updates::~Updates() = default;

// Setup -------------------------------------------------------------------------------------------

void Updates::add_stage(int stage, UnitRange& units, std::unique_ptr<Optimizer> optimizer) {
  members_.emplace_back(stage, units, std::move(optimizer));
}

// A tied weight has an arena of its own, so that a replica that updates a part of each arena has
// the same part of all copies of the weight.
void Updates::cut_arenas(const BucketOptions& buckets) {
  if (!spreads_ || ties_.empty()) return;
  std::unordered_set<const ParameterState*> tied;
  for (const Sequence::Tie& tie : ties_)
    for (const auto& [unit, parameter] : tie) tied.insert(parameter.state());
  std::unordered_set<std::string> names;
  for (const auto& [path, p] : model_.named_parameters())
    if (tied.contains(p.state())) names.insert("/" + path);
  const auto alone = [names](const std::string& name) { return names.contains(name) ? name : ""; };
  together_->set_cuts({alone, buckets.first_bytes, buckets.bucket_bytes, buckets.last_bytes});
}

void Updates::setup_stages(const BucketOptions& buckets, const std::vector<Sequence::Tie>& ties) {
  const bool has_replicas = replicas_ && replicas_->all().size() > 1;
  spreads_ = has_replicas && buckets.sharding >= Sharding::kStates;
  ties_ = ties;
  cut_arenas(buckets);
  for (Member& member : members_) {
    member.optimizer->add_stage(together_);
    if (has_replicas)
      member.replicas.emplace(*member.optimizer, *replicas_, buckets);
    else
      member.factor = member.optimizer->add_stage(std::make_shared<FactorStage>());
    member.optimizer->setup(*member.units);
  }
}

void Updates::finish_setup(const std::vector<std::vector<int>>& owners) {
  owners_ = owners;
  has_loss_scale_ = any_loss_scale();
  if (has_loss_scale_) expect_scaled();
  defers_ = has_loss_scale_ || clip_norm_ > 0 || !ties_.empty();
  number_parameters();
  share_tied_values();
}

// Collective: whether the rules, which are alike, have a loss scale. The last stage's multiplies
// the loss and each stage's own divides its gradients.
bool Updates::any_loss_scale() const {
  int has = 0;
  for (const Member& member : members_)
    for (const auto& stage : member.optimizer->stages())
      has |= dynamic_cast<const optimizers::DynamicLossScale*>(stage.get()) != nullptr;
  return (comm_ ? comm_->all_reduce_value(has, comm::Reduction::kMax) : has) != 0;
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
void Updates::number_parameters() {
  numbers_.clear();
  std::vector<double> weights;
  model_.visit_parameters([&](const std::string&, Parameter& p) {
    if (!p.defined() || !p.placement()->tied_to.empty()) return;
    if (!numbers_.try_emplace(p.state(), static_cast<int64_t>(numbers_.size())).second) return;
    weights.push_back(together_->weight_of(p));
  });
  if (tensor_) weights_ = array(weights, {int64_t(weights.size())}, tensor_->device());
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
  n_local_ = n_local;
  n_global_ = n_global;
  for (Member& member : members_)
    if (member.replicas) member.replicas->set_batch_weight(n_local, n_global);
}

void Updates::prepare_for_capture() {
  for (Member& member : members_) member.optimizer->prepare_for_capture();
}

// Steps -------------------------------------------------------------------------------------------

void Updates::begin_step() {
  together_->set_factor({});
  together_->set_found({});
  for (Member& member : members_) {
    const Device now = member.optimizer->parameters().front().device();
    CATENA_CHECK(
        DeviceError, now == member.device, "Pipeline::step: the parameters of stage ", member.stage,
        " are on ", now, ", where setup has put them on ", member.device,
        "; was the model moved since, or set up in another pipeline? Move it back, or make "
        "a new pipeline");
    member.reduced = member.update_later = member.is_counted = false;
    if (member.factor) member.factor->set_factor({});
    member.optimizer->zero_grads();
  }
}

// Replicas whose samples nobody has given count equally.
void Updates::set_counted(int stage, const Array& counted, int64_t samples) {
  Member* member = find(stage);
  if (!member || !counted.defined() || std::exchange(member->is_counted, true)) return;
  if (!member->replicas) return member->factor->set_factor(factor_over(counted, double(samples)));
  LossWeight& losses = member->replicas->reducer().losses();
  if (n_global_ > 0) return losses.set_counted(counted, double(n_global_));
  const Array share = samples > 0 ? divide(counted, double(samples)) : counted;
  losses.set_counted(share, double(replicas_->all().size()));
}

void Updates::reduce(int stage) {
  Member* member = find(stage);
  if (!member || !member->replicas) return;
  member->replicas->reducer().gradients_are_final();
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
    if (member.replicas && (member.reduced || updates)) member.replicas->reducer().run(update);
    member.optimizer->layout().settle_gradients();
  }
  sum_tied();
  if (updates && (has_loss_scale_ || clip_norm_ > 0)) {
    const Array total = sum_of_squares();
    if (has_loss_scale_) together_->set_found(logical_not(isfinite(total)).astype(Dtype::kFloat64));
    if (clip_norm_ > 0) together_->set_factor(fmin(multiply(rsqrt(total), clip_norm_), 1.0));
  }
  for (Member& member : members_)
    if (member.update_later) member.optimizer->update();
}

// The norm of all stages --------------------------------------------------------------------------

// A sum for each parameter of the model, so that the total has one order, whatever the cut; of
// spread states, over what is updated here.
Array Updates::squares_of(Device device, const Member& member) const {
  Array squares = zeros({static_cast<int64_t>(numbers_.size())}, {Dtype::kFloat64, device});
  for (const auto& arena : member.optimizer->layout().arenas()) {
    for (const auto& slot : arena.slots()) {
      const auto number = numbers_.find(slot.parameter.state());
      const auto here = intersection({slot.offset, slot.offset + slot.size}, arena.covers());
      if (number == numbers_.end() || here.size() == 0) continue;
      const Array part = arena.gradient().part(here);
      squares(Slice(number->second, number->second + 1))
          .assign(optimizers::sum_of_squares(part).reshape({1}));
    }
  }
  for (const auto& stage : member.optimizer->stages())
    if (const Array factor = stage->gradient_factor(device); factor.defined())
      squares = multiply(squares, square(factor));
  return squares;
}

Array Updates::squares_on(Device device, const std::vector<Member*>& members) const {
  const DeviceScope scope(device);
  Array squares;
  for (const Member* member : members) {
    const Array own = squares_of(device, *member);
    squares = squares.defined() ? catena::add(squares, own) : own;
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
  if (spreads_) replicas_->shard().all_reduce(total, comm::Reduction::kSum, total);
  if (tensor_) {
    total = multiply(total, weights_);
    tensor_->all_reduce(total, comm::Reduction::kSum, total);
  }
  return sum(total);
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

// Of a gradient that is spread, the part of this replica; else undefined. A tied weight is alone in
// its arena then.
Array Updates::own_part(const Parameter& tied) const {
  for (const Member& member : members_)
    for (const auto& arena : member.optimizer->layout().arenas())
      if (arena.keeps_own_gradient() && arena.slots()[0].parameter.state() == tied.state())
        return arena.gradient().memory;
  return {};
}

Array Updates::gradient_of(const Parameter& tied) const {
  const Array part = own_part(tied);
  return part.defined() ? part : tied.grad();
}

void Updates::add_gradient(const Parameter& tied, const Array& more) {
  if (const Array part = own_part(tied); part.defined())
    catena::add(part, more, part);
  else
    tied.accumulate_grad(more);
}

void Updates::set_gradient(const Parameter& tied, const Array& gradient) {
  if (const Array part = own_part(tied); part.defined())
    part.assign(gradient);
  else
    tied.set_grad(gradient);
}

// In the order of the units, into the first copy.
void Updates::add_tied(const Sequence::Tie& tie, const std::vector<int>& owners) {
  const Parameter& home = tie[0].second;
  for (size_t i = 1; i < tie.size(); ++i) {
    const Parameter& other = tie[i].second;
    const bool home_is_here = is_here(owners[0]), other_is_here = is_here(owners[i]);
    if (home_is_here && other_is_here) {
      add_gradient(home, gradient_of(other));
    } else if (other_is_here) {
      comm_->send(gradient_of(other), owners[0]);
    } else if (home_is_here) {
      add_gradient(home, received_like(gradient_of(home), owners[i]));
    }
  }
}

// From a rank of the pipeline.
Array Updates::received_like(const Array& like, int rank) const {
  const Array values = Array::uninitialized(like.shape(), like.dtype(), comm_->device());
  comm_->recv(values, rank);
  return values;
}

// Gradients or values of the first copy to the others.
void Updates::spread(const Sequence::Tie& tie, const std::vector<int>& owners, bool gradients) {
  const auto array_of = [&](const Parameter& p) { return gradients ? gradient_of(p) : p.data(); };
  const Parameter& home = tie[0].second;
  for (size_t i = 1; i < tie.size(); ++i) {
    const Parameter& other = tie[i].second;
    const bool home_is_here = is_here(owners[0]), other_is_here = is_here(owners[i]);
    if (!home_is_here && !other_is_here) continue;
    if (!other_is_here) {
      comm_->send(array_of(home), owners[i]);
      continue;
    }
    const Array values = home_is_here ? array_of(home) : received_like(array_of(other), owners[0]);
    gradients ? set_gradient(other, values) : other.copy_from(values);
  }
}

}  // namespace catena::parallel::pipeline
