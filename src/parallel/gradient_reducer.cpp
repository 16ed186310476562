// Buckets of gradients, reduced while the backward pass that makes them is still running.
#include "catena/parallel/gradient_reducer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "autograd/backward_pass.h"
#include "bucket_exchange.h"
#include "bucket_reduction.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "catena/parallel/no_sync.h"
#include "catena/parallel/persistents.h"
#include "loss_weight.h"
#include "round.h"
#include "slice_run.h"
#include "state_comparison.h"

namespace catena::parallel {

GradientReducer::GradientReducer(const BatchRanks& ranks, const BucketOptions& options)
    : ranks_(ranks),
      comm_(ranks.all()),
      options_(options),
      buckets_(std::make_shared<BucketExchange>(ranks, options)),
      comparison_(std::make_shared<StateComparison>(comm_, options)),
      round_(std::make_shared<Round>()),
      losses_(std::make_shared<LossWeight>(comm_)) {
  CATENA_CHECK(ValueError, !options.reduce_dtype || is_narrow_float(*options.reduce_dtype),
               "multi-node optimizer: expected a reduce_dtype of float16 or bfloat16, got ",
               *options.reduce_dtype);
  if (options.slices == 0) return;
  CATENA_CHECK(ValueError, options.sharding <= Sharding::kStates && !options.reduce_dtype,
               "multi-node optimizer: slices keep gradients whole and add them in float32; use "
               "them with Sharding::kNone or kStates, and without a reduce_dtype");
  slices_ = std::make_shared<SliceRun>(comm_, options.slices);
}

// Setup -------------------------------------------------------------------------------------------

// Before arenas are made, which ranks do together where they share memory.
void GradientReducer::check_options() { comparison_->check_options(); }
void GradientReducer::before_setup(Optimizer&, const Parameters&) { check_options(); }

// Before values are exchanged.
void GradientReducer::before_values_move(const optimizers::ArenaSet& layout,
                                         const NamedPersistents& persistents) {
  check_options();
  comparison_->check_structure(layout, persistents);
  check_devices(comm_, layout);
}

void GradientReducer::after_setup(Optimizer& optimizer) {
  stop_observing();
  if (number_ == 0) number_ = comm::internals(comm_).next_optimizer();
  optimizer_ = &optimizer;
  for (const Parameter& p : optimizer.layout().parameters()) observe(p);
  buckets_->attach(optimizer, number_);
  round_->finish();
  for (const auto& arena : optimizer.layout().arenas()) {
    if (!arena.has_whole_data()) continue;  // made alike as it was cut
    comm_.broadcast(arena.data().memory, 0);
    arena.copy_data_to_master();
  }
  broadcast_persistents(optimizer.persistents(), comm_);
  if (slices_) slices_->after_setup(optimizer);
  first_step_ = {};
  comparison_->after_setup(optimizer, number_);
}

void GradientReducer::check_state(const char* who) { comparison_->check_state(who); }
void GradientReducer::compare_next() { comparison_->compare_next(); }

void GradientReducer::set_batch_weight(int64_t n_local, int64_t n_global) {
  CATENA_CHECK(ValueError, n_local >= 0 && n_global > 0 && n_local <= n_global,
               "set_batch_weight: expected 0 <= n_local <= n_global and n_global > 0, got ",
               n_local, " of ", n_global);
  const BatchShare share{n_local, n_global}, before = buckets_->share();
  CATENA_CHECK(ValueError, share.weight() == before.weight() || !cuda::is_capturing(comm_.device()),
               "set_batch_weight: called while a graph is captured; set it before the capture or "
               "between replays");
  CATENA_CHECK(ValueError,
               !round_->is_weighed_by_hand() ||
                   share.weight() == (before.is_given() ? before.weight() : 1.0 / comm_.size()),
               "set_batch_weight: ", n_local, " of ", n_global,
               " after a backward pass of this step with another weight, which would count with "
               "the new one. To give each pass its samples, open accumulate() around all but the "
               "last: { const auto passes = optimizer.accumulate(); ... }");
  join_left_out();
  losses_->set_shares(n_local, n_global);
  if (n_local == 0 && adds_next_pass()) round_->leave_out(true);
  buckets_->set_share(share);
}

// Backward ----------------------------------------------------------------------------------------

// The step begins: nothing is known of its gradients.
void GradientReducer::open_step() {
  round_->open();
  losses_->begin_step();
  first_step_ = {};
}

bool GradientReducer::anything_kept() const {
  const Parameters& parameters = optimizer_->layout().parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Parameter& p) { return !p.state()->is_stale(); });
}

// Whether this optimizer's step is going on: its gradients were zeroed after its last update. Else
// the pass is another optimizer's, of which other ranks need not make one. The model's zero_grads()
// starts a step too. It is recognised because an update leaves no gradient marked as zero.
bool GradientReducer::is_in_own_step() {
  if (round_->is(Round::State::kIdle) && comparison_->updates() > 0 && !anything_kept())
    reopen_step();
  return !round_->is(Round::State::kIdle);
}

// The same without zero_grads() of the optimizer, which lays out anew what has moved.
void GradientReducer::reopen_step() {
  const bool has_moved = round_->is_spoiled(Round::Spoiled::kByMove);
  open_step();
  if (has_moved) round_->spoil(Round::Spoiled::kByMove);
}

// All ranks move their arenas in the same step. A rank that moves alone meets the others in another
// call, most likely in their next bucket; the tag says in the report that its parameters moved.
void GradientReducer::before_layout_moves(Optimizer&) {
  if (optimizer_ == nullptr) return;
  wait();
  if (buckets_->keeps_parts()) round_->spoil(Round::Spoiled::kByMove);
  buckets_->layout_moves();
  const Array moves = ones({1}, {Dtype::kUInt64, comm_.device()});
  comm_.all_reduce_async(moves, comm::Reduction::kSum, current_stream(comm_.device()),
                         {comm::TagKind::kLayout, static_cast<uint16_t>(number_), 0});
}

void GradientReducer::backward_begins() {
  if (round_->is(Round::State::kNamed)) return;
  if (!round_->is_open()) {
    CATENA_CHECK(
        GradientError, !anything_kept(),
        "backward: the gradients were already averaged over the ranks since the last update; call "
        "update() or "
        "zero_grads() first, and run all but the last of several backward passes inside no_sync()");
    wait();
    reopen_step();
  }
  // Whoever has taken the parameters since makes the pass.
  const bool is_own = is_in_own_step() && optimizer_->layout().in_place();
  if (!is_own) {
    if (buckets_->keeps_parts() && !round_->is_spoiled(Round::Spoiled::kByMove))
      round_->spoil(Round::Spoiled::kByPass);
    return buckets_->reopen();
  }
  const auto begin = [this](Round::State how) {
    prepare_reductions();
    round_->begin(buckets_->buckets(), how);
    buckets_->collect(0);
    buckets_->collect(1);
  };
  const bool lacks_one_by_hand = round_->takes_expected() && synchronizes(comm_);
  const bool adds = adds_to_step();
  if (adds_next_pass() && (adds || round_->is_left_out())) {
    round_->leave_out(false);
    return begin(Round::State::kAdding);
  }
  if (!adds) return;
  join_left_out();
  if ((lacks_one_by_hand || !synchronizes(comm_)) && !losses_->accumulates() && !slices_)
    round_->weigh_by_hand();
  synchronizes(comm_) ? begin(Round::State::kReducing) : buckets_->reopen();
}

// Gradients are about to be made and reduced. Sums of passes before stay aside.
void GradientReducer::prepare_reductions() {
  round_->has_sums() ? buckets_->set_parts_aside() : buckets_->reopen();
  buckets_->update();
}

// Passes that accumulate --------------------------------------------------------------------------

// Whether a pass that begins now is one of several whose parts are added up.
bool GradientReducer::adds_next_pass() const {
  return optimizer_ != nullptr && round_->is(Round::State::kOpen) && losses_->accumulates() &&
         !synchronizes(comm_) && buckets_->adds_parts();
}

// The others have added up the parts of a pass that this rank has left out.
void GradientReducer::join_left_out() {
  if (!round_->is_left_out()) return;
  round_->leave_out(false);
  losses_->leave_out();
  prepare_reductions();
  round_->begin(buckets_->buckets(), Round::State::kAdding);
  flush();
}

// Whether the pass that has begun adds to the gradients of the step. One that leaves parameters
// out, for the gradient of an input, is a pass of its own, unless it is the last one of a rank
// whose batch is empty.
bool GradientReducer::adds_to_step() const {
  return slices_ || synchronizes(comm_) || !BackwardPass::outermost_drops();
}

// Whether the pass that has begun is to be weighed by what its loss divided by. Passes whose sums
// the caller weighs by hand are not.
bool GradientReducer::weighs_losses() const {
  if (comm_.size() == 1 && !losses_->accumulates() && !slices_) return false;
  if (slices_ && slices_->index() < 0) return false;
  if (round_->is_weighed_by_hand() || !optimizer_->layout().in_place()) return false;
  return round_->is_in_pass() ||
         (round_->is(Round::State::kOpen) && (slices_ || losses_->accumulates()));
}

void GradientReducer::backward_starts(PassStart& start) {
  const bool weighs = weighs_losses();
  if (weighs && slices_) losses_->begin_slice(slices_->index(), slices_->rows().size());
  if (weighs)
    losses_->begin_pass(start, adds_to_step());
  else if (!round_->is(Round::State::kIdle) && adds_to_step())
    losses_->count_unweighed();
  else if (round_->is(Round::State::kIdle) && !BackwardPass::outermost_drops())
    note_first_pass(start);
  // Beside the pass, at whose end nothing then waits for it.
  if (weighs && !slices_ && round_->is(Round::State::kReducing)) count_losses();
}

// Behind setup gradients are zero without zero_grads(), which a program may call at the end of its
// steps. Whether the pass is one of this optimizer only its update tells.
void GradientReducer::note_first_pass(PassStart& start) {
  if (comparison_->updates() > 0 || slices_ || comm_.size() == 1) return;
  FirstStep& first = first_step_;
  const Mean* mean = start.mean();
  const bool is_only = ++first.passes == 1 && synchronizes(comm_);
  first.counted = is_only && mean ? mean->counted : Array();
  first.of_sum.clear();
  if (!is_only || mean) return;
  for (const VariableNode* v : start.means()) first.of_sum.push_back(v->mean->mean);
}

// As LossWeight does with k = 1. On all ranks, as none has begun a step.
void GradientReducer::count_first_step() {
  const FirstStep first = std::exchange(first_step_, {});
  if (comparison_->updates() > 0 || slices_ || comm_.size() == 1) return;
  for (const Mean& mean : first.of_sum)
    CATENA_CHECK(GradientError, mean.counted.item<double>() == mean.expected,
                 "update: the first backward pass came before zero_grads(), from a loss that is a "
                 "sum with means in it that left elements out, which are not weighed over the "
                 "ranks there; call zero_grads() before the first pass, too");
  const BatchShare& share = buckets_->share();
  const double local = share.is_given() ? double(share.local) : 1;
  const double whole = share.is_given() ? double(share.global) : comm_.size();
  const bool weighs = first.counted.defined() && local > 0 && !round_->is_weighed_by_hand();
  const Array counted = full({1}, local, {Dtype::kFloat64, comm_.device()});
  if (weighs) {
    const Array number = first.counted.to(comm_.device()).reshape({1}).astype(Dtype::kFloat64);
    first_factor_ = divide(number, local);
    counted.assign(number);
  }
  losses_->set_counted(counted, whole);
}

// Once in a round, in which all ranks do so before their first bucket.
void GradientReducer::count_losses() {
  if (!round_->counts_losses()) return;
  losses_->before_reduction();
  start_counts(ranks_, *losses_, uint16_t(number_));
}

void GradientReducer::accumulate() {
  constexpr const char* kWho = "accumulate";
  CATENA_CHECK(ValueError, optimizer_ != nullptr, kWho,
               ": the optimizer is not set up; call setup(model) first");
  CATENA_CHECK(GradientError,
               round_->is_open() && !round_->is_weighed_by_hand() &&
                   (losses_->accumulates() || is_in_own_step()),
               kWho,
               ": the step has had a backward pass already, or the last update's gradients are "
               "still there; call zero_grads(), and open accumulate() before the first pass");
  losses_->accumulate();
}

void GradientReducer::expect_pass_by_hand() {
  if (!round_->is(Round::State::kIdle)) round_->expect_by_hand();
}

void GradientReducer::gradient_is_final(ParameterState& parameter) {
  CATENA_CHECK(GradientError, !round_->is_named(parameter), "backward: parameter '",
               path_of(parameter),
               "' has got a gradient after gradients_are_final() named it; run this pass before");
  if (!round_->is_in_pass()) return;
  round_->is_final(*buckets_->bucket_of(parameter));
  start_ready_buckets();
}

// Parameters that the caller knows to be complete ------------------------------------------------

void GradientReducer::begin_named_round() {
  constexpr const char* kWho = "gradients_are_final";
  CATENA_CHECK(ValueError, optimizer_ != nullptr, kWho,
               ": the optimizer is not set up; call setup(model) first");
  if (round_->is_by_caller()) return;
  CATENA_CHECK(
      GradientError, round_->is_open(), kWho,
      ": the gradients were already averaged over the ranks since the last update; run the "
      "backward passes inside no_sync()");
  CATENA_CHECK(GradientError, is_in_own_step(), kWho,
               ": the last update's gradients are still there; call zero_grads() first");
  optimizer_->settle_layout();
  buckets_->update();
  round_->begin(buckets_->buckets(), Round::State::kNamed);
}

void GradientReducer::gradients_are_final(const Parameters& parameters) {
  begin_named_round();
  for (const Parameter& p : parameters) {
    const auto bucket = p.defined() ? buckets_->bucket_of(*p.state()) : std::nullopt;
    CATENA_CHECK(ValueError, bucket, "gradients_are_final: the optimizer does not have parameter '",
                 p.defined() ? path_of(*p.state()) : std::string("(undefined)"), "'");
    round_->name(*p.state(), *bucket);
  }
  start_ready_buckets();
  if (!round_->has_next()) round_->end();
}

void GradientReducer::gradients_are_final() {
  begin_named_round();
  gradients_are_final(optimizer_->layout().parameters());
}

void GradientReducer::start_ready_buckets() {
  while (round_->is_next_ready()) start_next();
}

void GradientReducer::backward_ends() {
  if (round_->is_in_pass()) flush();
}

void GradientReducer::flush() {
  while (round_->has_next()) start_next();
  round_->end();
}

size_t GradientReducer::started() const { return round_->started(); }

const std::vector<Bucket>& GradientReducer::buckets() const { return buckets_->buckets(); }

void GradientReducer::start_next() {
  const size_t index = round_->take_next();
  const bool adding = round_->is(Round::State::kAdding);
  if (!buckets_->settle(index, adding)) return;
  if (slices_) return buckets_->is_started(index, reduce_slices(buckets()[index]));
  if (!adding) count_losses();
  BucketExchange::With with{
      .is_mean = losses_->accumulates(), .has_sum = round_->has_sums(), .factor = first_factor_};
  if (!adding) {  // what travels along does so with the last pass
    with.agreement = begin_agreement();
    with.losses = losses_.get();
  }
  buckets_->reduce(index, with);
}

// What the ranks must agree on, if it is to travel with this bucket.
StepAgreement* GradientReducer::begin_agreement() {
  if (!round_->agrees()) return nullptr;
  return comparison_->begin_step([this] {
    return StateComparison::Facts{buckets_->share(), order_, losses_->first_samples()};
  });
}

Event GradientReducer::reduce_slices(const Bucket& bucket) {
  const bool is_first = round_->counts_losses();
  if (is_first) losses_->before_reduction();
  const Stream side = comm_.side_stream();
  std::optional<StreamScope> scope;
  if (comm_.device().is_cuda()) {
    side.wait(current_stream(comm_.device()));
    scope.emplace(side);
  }
  if (is_first) losses_->sum_slices(slices_->local());
  slices_->reduce(bucket.arena, {bucket.begin, bucket.end});
  if (StepAgreement* const agreement = begin_agreement())
    agreement->exchange([&](const Array& sums) {
      comm_.all_reduce_async(sums, comm::Reduction::kSum, side, agreement->tag());
    });
  return scope ? side.record() : Event();
}

// Update ------------------------------------------------------------------------------------------

void GradientReducer::wait() { buckets_->wait(); }
void GradientReducer::before_rule_reads(size_t index) { buckets_->wait_for(index); }

// What no pass has begun to reduce.
void GradientReducer::begin_last_reductions() {
  // On a rank without a pass, too, where the model's gradients were zeroed.
  if (round_->is(Round::State::kIdle) && is_in_own_step()) buckets_->reopen();
  if (round_->has_sums()) prepare_reductions();
  const bool is_own = !round_->is(Round::State::kIdle);
  round_->begin(buckets_->buckets(), Round::State::kReducing);
  if (!is_own) count_first_step();
}

void GradientReducer::run(optimizers::UpdateContext& update) {
  if (slices_) slices_->require_last();
  buckets_->update();
  CATENA_CHECK(GradientError, !round_->is_spoiled(Round::Spoiled::kByMove),
               "update: parameters have moved since their gradients were averaged, of which this "
               "rank keeps a part; call zero_grads() after that");
  const bool is_mixed = round_->is_open() && round_->is_spoiled(Round::Spoiled::kByPass);
  CATENA_CHECK(GradientError, !is_mixed || !anything_kept(),
               "update: a backward pass has added to gradients since the last update, of which "
               "this rank keeps a part; call zero_grads() before the passes of a step");
  join_left_out();
  if (round_->is_open()) begin_last_reductions();
  if (!round_->is(Round::State::kReduced)) flush();
  scale_all(update, losses_->factor());
  if (options_.sharding != Sharding::kParameters) comparison_->compare_values("update");
  if (!update.waits_by_arena()) wait();
}

void GradientReducer::after_update(Optimizer&) {
  wait();
  round_->finish();
  if (slices_) slices_->discard();
  first_factor_ = {};
  losses_->end_step();
  comparison_->after_update(slices_.get());
}

void GradientReducer::discard(Optimizer&) {
  wait();
  if (options_.sharding == Sharding::kParameters) comparison_->compare_values("zero_grads");
  if (slices_) slices_->discard();
  buckets_->reopen();
  open_step();
}

void GradientReducer::before_accumulate(Optimizer&) {
  CATENA_CHECK(GradientError, round_->is_open(),
               "accumulate_grads: the gradients were already averaged over the ranks; run the "
               "backward passes of all "
               "replicas inside no_sync(), then accumulate, then update()");
  round_->weigh_by_hand();
}

Array GradientReducer::gradient_factor(Device device) {
  return losses_->factor().defined() ? losses_->factor().to(device) : Array();
}

}  // namespace catena::parallel
