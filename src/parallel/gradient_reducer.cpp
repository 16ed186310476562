// Buckets of gradients, reduced while the backward pass that makes them is still running.
#include "catena/parallel/gradient_reducer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "autograd/backward_pass.h"
#include "bucket_reduction.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "catena/parallel/no_sync.h"
#include "catena/parallel/persistents.h"
#include "core/compute_dtype.h"
#include "equal_states.h"
#include "gradient_slots.h"
#include "loss_weight.h"
#include "round.h"
#include "slice_run.h"
#include "step_agreement.h"

namespace catena::parallel {
namespace {

constexpr int64_t kUpdatesBetweenChecks = 64;

}  // namespace

GradientReducer::GradientReducer(const BatchRanks& ranks, const BucketOptions& options)
    : ranks_(ranks),
      comm_(ranks.all()),
      options_(options),
      round_(std::make_shared<Round>()),
      whole_(std::make_shared<GradientSlots>()),
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
void GradientReducer::before_setup(Optimizer&, const Parameters&) { check_options(); }

// Before values are exchanged.
void GradientReducer::before_values_move(const optimizers::ArenaSet& layout,
                                         const NamedPersistents& persistents) {
  check_options();
  check_structure(layout, persistents);
  check_devices(layout);
}

void GradientReducer::after_setup(Optimizer& optimizer) {
  stop_observing();
  if (number_ == 0) number_ = comm::internals(comm_).next_optimizer();
  optimizer_ = &optimizer;
  for (const Parameter& p : optimizer.layout().parameters()) observe(p);
  cut_for_.clear();
  update_buckets();
  round_->finish();
  prepare_sums();
  for (const auto& arena : optimizer.layout().arenas()) {
    if (!arena.has_whole_data()) continue;  // made alike as it was cut
    comm_.broadcast(arena.data().memory, 0);
    arena.copy_data_to_master();
  }
  broadcast_persistents(optimizer.persistents(), comm_);
  if (slices_) slices_->after_setup(optimizer);
  updates_ = 0;
  first_step_ = {};
  agreement_ = std::make_shared<StepAgreement>(comm_, number_);
  compare_ = compare_values_ = true;
  check_equal_states(comm_, optimizer, "setup");
}

void GradientReducer::update_buckets() {
  const auto& arenas = optimizer_->layout().arenas();
  std::vector<const void*> blocks;
  // Where ranks keep parts, the memory of gradients comes and goes.
  for (const auto& arena : arenas)
    blocks.push_back(scatters(arena) ? arena.slots()[0].parameter.state()
                                     : arena.gradient().memory.raw_data());
  if (blocks == cut_for_) return;
  check_devices(optimizer_->layout());
  cut_for_ = std::move(blocks);
  buckets_ = make_buckets(arenas, options_);
  bucket_of_.clear();
  for (size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b];
    for (size_t s = bucket.first; s < bucket.last; ++s)
      bucket_of_[arenas[bucket.arena].slots()[s].parameter.state()] = b;
  }
  int64_t largest = 0;  // of those whose memory is given up
  for (const auto& arena : arenas)
    if (scatters(arena) && options_.sharding >= Sharding::kGradients)
      largest = std::max(largest, arena.size() * int64_t(itemsize(arena.dtype())));
  whole_->prepare(comm_.device(), largest);
  device_weights_.clear();
  for (const auto& arena : arenas) {
    if (!arena.device().is_cuda()) continue;
    // A weight such as 1/3 is not rounded to 16 bits: the weights of all ranks add up to one.
    device_weights_.push_back(
        scalar_array(share_.weight(), {compute_dtype(arena.dtype()), arena.device()}));
  }
}

void GradientReducer::set_batch_weight(int64_t n_local, int64_t n_global) {
  CATENA_CHECK(ValueError, n_local >= 0 && n_global > 0 && n_local <= n_global,
               "set_batch_weight: expected 0 <= n_local <= n_global and n_global > 0, got ",
               n_local, " of ", n_global);
  const Share share{n_local, n_global};
  CATENA_CHECK(ValueError, share.weight() == share_.weight() || !cuda::is_capturing(comm_.device()),
               "set_batch_weight: called while a graph is captured; set it before the capture or "
               "between replays");
  CATENA_CHECK(ValueError,
               !round_->is_weighed_by_hand() ||
                   share.weight() == (share_.is_given() ? share_.weight() : 1.0 / comm_.size()),
               "set_batch_weight: ", n_local, " of ", n_global,
               " after a backward pass of this step with another weight, which would count with "
               "the new one. To give each pass its samples, open accumulate() around all but the "
               "last: { const auto passes = optimizer.accumulate(); ... }");
  join_left_out();
  losses_->set_shares(n_local, n_global);
  if (n_local == 0 && adds_next_pass()) round_->leave_out(true);
  if (std::exchange(share_, share).weight() == share.weight()) return;
  for (const Array& w : device_weights_) w.fill(share.weight());
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
  if (round_->is(Round::State::kIdle) && updates_ > 0 && !anything_kept()) reopen_step();
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
  if (keeps_parts()) round_->spoil(Round::Spoiled::kByMove);
  cut_for_.clear();
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
    if (keeps_parts() && !round_->is_spoiled(Round::Spoiled::kByMove))
      round_->spoil(Round::Spoiled::kByPass);
    return reopen();
  }
  const auto begin = [this](Round::State how) {
    prepare_reductions();
    round_->begin(buckets_, how);
    collect(0);
    collect(1);
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
  synchronizes(comm_) ? begin(Round::State::kReducing) : reopen();
}

// Gradients are about to be made and reduced. Sums of passes before stay aside.
void GradientReducer::prepare_reductions() {
  if (!round_->has_sums()) reopen();
  for (size_t i = 0; round_->has_sums() && i < optimizer_->layout().arenas().size(); ++i)
    optimizer_->arena(i).set_own_gradient_aside();
  update_buckets();
}

// Passes that accumulate --------------------------------------------------------------------------

// Whether a part is all that this rank keeps of the arena's gradients. Passes that accumulate add
// up parts then.
bool GradientReducer::adds(const optimizers::ParameterArena& arena) const {
  return scatters(arena) && options_.sharding >= Sharding::kGradients && arena.frees_gradients();
}

// Whether a pass that begins now is one of several whose parts are added up.
bool GradientReducer::adds_next_pass() const {
  if (optimizer_ == nullptr || !round_->is(Round::State::kOpen) || !losses_->accumulates() ||
      synchronizes(comm_))
    return false;
  const auto& arenas = optimizer_->layout().arenas();
  return std::any_of(arenas.begin(), arenas.end(), [&](const auto& a) { return adds(a); });
}

// The others have added up the parts of a pass that this rank has left out.
void GradientReducer::join_left_out() {
  if (!round_->is_left_out()) return;
  round_->leave_out(false);
  losses_->leave_out();
  prepare_reductions();
  round_->begin(buckets_, Round::State::kAdding);
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
  if (updates_ > 0 || slices_ || comm_.size() == 1) return;
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
  if (updates_ > 0 || slices_ || comm_.size() == 1) return;
  for (const Mean& mean : first.of_sum)
    CATENA_CHECK(GradientError, mean.counted.item<double>() == mean.expected,
                 "update: the first backward pass came before zero_grads(), from a loss that is a "
                 "sum with means in it that left elements out, which are not weighed over the "
                 "ranks there; call zero_grads() before the first pass, too");
  const double local = share_.is_given() ? double(share_.local) : 1;
  const double whole = share_.is_given() ? double(share_.global) : comm_.size();
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
  round_->is_final(bucket_of_.at(&parameter));
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
  update_buckets();
  round_->begin(buckets_, Round::State::kNamed);
}

void GradientReducer::gradients_are_final(const Parameters& parameters) {
  begin_named_round();
  for (const Parameter& p : parameters) {
    const auto bucket = bucket_of_.find(p.state());
    CATENA_CHECK(ValueError, bucket != bucket_of_.end(),
                 "gradients_are_final: the optimizer does not have parameter '",
                 p.defined() ? path_of(*p.state()) : std::string("(undefined)"), "'");
    round_->name(*p.state(), bucket->second);
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

// Whether a bucket is reduced into the part that this rank updates.
bool GradientReducer::scatters(const optimizers::ParameterArena& arena) const {
  return is_reduced_in_parts(arena, options_);
}

// Whether that takes no multiprocessors, which rounding would.
bool GradientReducer::goes_by_copies(const optimizers::ParameterArena& arena) const {
  const size_t bytes = size_t(arena.size()) * itemsize(arena.dtype());
  return scatters(arena) && options_.sharding < Sharding::kGradients &&
         comm::internals(ranks_.shard()).moves_by_copies(bytes);
}

// Gives the gradients of a bucket one block, before passes make them elsewhere.
void GradientReducer::collect(size_t bucket) {
  if (bucket >= buckets_.size()) return;
  optimizers::ParameterArena& arena = optimizer_->arena(buckets_[bucket].arena);
  if (!scatters(arena) || arena.keeps_own_gradient() || arena.has_whole_gradient()) return;
  arena.collect_gradient(whole_->take(bucket, arena.size(), arena.dtype()));
}

bool GradientReducer::keeps_parts() const {
  const auto& arenas = optimizer_->layout().arenas();
  return std::any_of(arenas.begin(), arenas.end(),
                     [](const auto& arena) { return arena.keeps_own_gradient(); });
}

// Gradients of which parts were reduced are open again.
void GradientReducer::reopen() {
  for (size_t i = 0; i < optimizer_->layout().arenas().size(); ++i)
    optimizer_->arena(i).reopen_gradient();
}

// The operation by which this rank's gradients count. On a GPU their weight is a value that replays
// of a graph can change.
comm::Reduce GradientReducer::weighted(size_t arena, const Array& gradient) const {
  if (!share_.is_given() || losses_->accumulates()) return comm::Reduction::kMean;
  const bool is_cuda = gradient.device().is_cuda();
  if (share_.local == 0) {
    gradient.fill(0);  // a mean over no samples is not a number, which no weight would remove
    return is_cuda ? comm::Reduce(comm::Reduction::kSum) : comm::weighted(0);
  }
  if (!is_cuda) return comm::weighted(share_.weight());
  multiply(gradient, device_weights_[arena], gradient);
  return comm::Reduction::kSum;
}

void GradientReducer::start_next() {
  const size_t index = round_->take_next();
  const Bucket& bucket = buckets_[index];
  optimizers::ParameterArena& arena = optimizer_->arena(bucket.arena);
  if (arena.keeps_own_gradient()) return;  // reduced for an update before
  const bool adding = round_->is(Round::State::kAdding);
  if (adding && !adds(arena)) return;  // whole until the last pass
  collect(index);
  arena.settle_gradients(bucket.first, bucket.last);
  for (size_t s = bucket.first; s < bucket.last; ++s)
    arena.slots()[s].parameter.state()->mark_written();
  if (bucket.begin == bucket.end) return;
  if (slices_) {
    is_started(bucket, reduce_slices(bucket));
    return;
  }
  if (!adding) count_losses();
  reduce(index);
  if (scatters(arena)) collect(index + 1);
}

void GradientReducer::reduce(size_t index) {
  const comm::CallTag tag{comm::TagKind::kBucket, static_cast<uint16_t>(number_),
                          static_cast<int32_t>(index)};
  const Bucket& bucket = buckets_[index];
  optimizers::ParameterArena& arena = optimizer_->arena(bucket.arena);
  const Array gradient = arena.gradient().part({bucket.begin, bucket.end});
  if (first_factor_.defined())
    multiply(gradient, first_factor_.astype(compute_dtype(gradient.dtype())), gradient);
  BucketReduction reduction{gradient, {}, weighted(bucket.arena, gradient), tag};
  if (!goes_by_copies(arena)) reduction.travels_as = travelling_dtype(arena.dtype(), options_);
  const Array own =
      scatters(arena) ? arena.own_gradient(options_.sharding >= Sharding::kGradients) : Array();
  const bool has_sum = round_->has_sums() && adds(arena);
  reduction.own = has_sum ? arena.own_gradient(false) : own;
  if (has_sum) reduction.sum = own;
  // What travels along does so with the last pass.
  const bool adding = round_->is(Round::State::kAdding);
  StepAgreement* const agreement = !adding && begin_agreement() ? agreement_.get() : nullptr;
  is_started(bucket,
             start_reduction(ranks_, reduction, agreement, adding ? nullptr : losses_.get()));
  if (!scatters(arena)) return;
  arena.keep_own_gradient(own);
  whole_->is_read_until(index, last_);
}

void GradientReducer::is_started(const Bucket& bucket, const Event& end) {
  last_ = end;
  last_of_arena_.resize(optimizer_->layout().arenas().size());
  last_of_arena_[bucket.arena] = end;
}

// Whether what the ranks must agree on is to travel with this bucket. Captured steps are counted by
// the launches of their graph.
bool GradientReducer::begin_agreement() {
  if (!round_->agrees()) return false;
  note_facts(*agreement_);
  const uint64_t capture = comm_.device().is_cuda() ? cuda::capture_id() : 0;
  if (capture == 0) return agreement_->begin_step(updates_);
  if (std::exchange(capture_, capture) == capture) return false;
  cuda::add_launch_hook([this, weak = std::weak_ptr<StepAgreement>(agreement_), share = share_] {
    const std::shared_ptr<StepAgreement> agreement = weak.lock();
    if (!agreement) return;
    check_replayed_share(share);
    note_facts(*agreement);
    agreement->replay_step(updates_);
  });
  return false;
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
  if (begin_agreement())
    agreement_->exchange([&](const Array& sums) {
      comm_.all_reduce_async(sums, comm::Reduction::kSum, side, agreement_->tag());
    });
  return scope ? side.record() : Event();
}

// Update ------------------------------------------------------------------------------------------

void GradientReducer::wait() {
  if (last_) current_stream(comm_.device()).wait(last_);
  last_ = {};
  last_of_arena_.clear();
}

void GradientReducer::before_rule_reads(size_t index) {
  if (index < last_of_arena_.size() && last_of_arena_[index])
    current_stream(comm_.device()).wait(last_of_arena_[index]);
}

// What no pass has begun to reduce.
void GradientReducer::begin_last_reductions() {
  // On a rank without a pass, too, where the model's gradients were zeroed.
  if (round_->is(Round::State::kIdle) && is_in_own_step()) reopen();
  if (round_->has_sums()) prepare_reductions();
  const bool is_own = !round_->is(Round::State::kIdle);
  round_->begin(buckets_, Round::State::kReducing);
  if (!is_own) count_first_step();
}

void GradientReducer::run(optimizers::UpdateContext& update) {
  if (slices_) slices_->require_last();
  update_buckets();
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
  if (options_.sharding != Sharding::kParameters) compare_values("update");
  if (!update.waits_by_arena()) wait();
}

void GradientReducer::after_update(Optimizer&) {
  wait();
  round_->finish();
  if (slices_) slices_->discard();
  first_factor_ = {};
  losses_->end_step();
  comm::internals(comm_).set_updates(updates_ + 1);
  if (++updates_ % kUpdatesBetweenChecks == 0) compare_ = true;
  if (!compare_ || cuda::is_capturing(comm_.device())) return;
  compare_ = false;
  agreement_->check();
  comm_.check();
  if (slices_) slices_->check();
  bring_values();
  check_equal_states(comm_, *optimizer_, "update", true);
}

// The memory that scattered sums need besides the gradients.
void GradientReducer::prepare_sums() {
  int64_t most = 0;
  for (const auto& arena : optimizer_->layout().arenas())
    if (scatters(arena)) most = std::max(most, arena.size() * int64_t(itemsize(arena.dtype())));
  if (most > 0) comm::internals(ranks_.shard()).prepare_scattered_sums(size_t(most));
}

void GradientReducer::discard(Optimizer&) {
  wait();
  if (options_.sharding == Sharding::kParameters) compare_values("zero_grads");
  if (slices_) slices_->discard();
  reopen();
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
