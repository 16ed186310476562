#include "parallel/pipeline/step_runner.h"

#include <algorithm>
#include <utility>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random_source.h"
#include "catena/core/error.h"
#include "catena/core/graph.h"
#include "catena/core/trace.h"
#include "core/compute_dtype.h"
#include "parallel/pipeline/rules.h"

namespace catena::parallel::pipeline {

void ShapeBook::begin_batch(const MicroBatches& batch) {
  new_.clear();
  for (int m = 0; m < batch.size; ++m)
    if (const BatchForm form = batch.form_of(m); !pages_.contains(form)) new_.push_back(form);
}

void ShapeBook::forget_new() {
  for (const BatchForm& form : new_) pages_.erase(form);
}

void ShapeBook::check(const BatchForm& form, int boundary, const Variables& results,
                      bool over_ranks) {
  const MessageInfo now = info_of(results);
  MessageInfo& known = pages_[form].try_emplace(boundary, now).first->second;
  const bool has_form =
      std::equal(now.begin(), now.end(), known.begin(), known.end(),
                 [](const ArrayInfo& a, const ArrayInfo& b) { return a.has_form_of(b); });
  if (!has_form)
    fail<ShapeError>("Pipeline: stage ", boundary, " gave ", text_of(now), " for a micro-batch of ",
                     form.samples, " samples, and ", text_of(known),
                     " in earlier ones; the results of a stage must depend on the size of the "
                     "micro-batch alone");
  for (size_t i = 0; i < now.size(); ++i) {
    CATENA_CHECK(GradientError, !over_ranks || known[i].wants_gradient || !now[i].wants_gradient,
                 "Pipeline: result ", i, " of stage ", boundary,
                 " wants a gradient now, and wanted none in the first step on such a batch, when "
                 "the next rank learnt what to send; were its layers frozen then? Freeze them "
                 "after that step, or make a new pipeline when they are to be trained");
    if (!over_ranks) known[i].wants_gradient = now[i].wants_gradient;
  }
}

StepRunner::StepRunner(const Plan& plan, Updates& updates, const UnitNumbers& numbers)
    : plan_(plan), updates_(updates), numbers_(numbers) {
  const auto& again = plan.options.recompute;
  for (int s = 0; s < plan.schedule.stages(); ++s) {
    const bool recomputes = std::find(again.begin(), again.end(), s) != again.end();
    const Keep keep = recomputes ? plan.options.keep : Keep::kEverything;
    stages_.push_back(plan.has_stage(s)
                          ? std::make_unique<Stage>(s, plan.units(s), plan.device_of(s), keep)
                          : nullptr);
  }
  link_ = plan.is_over_ranks()
              ? make_rank_link(*plan.place.comm, mailbox_, plan.options.receives_wait)
              : make_local_link(plan.place.devices, mailbox_);
}

void StepRunner::begin_batch(const MicroBatches& batch) {
  batch_ = batch;
  book_.begin_batch(batch);
  for (const BatchForm& form : book_.new_forms())
    CATENA_CHECK(
        Error,
        !plan_.is_over_ranks() || !plan_.place.comm->device().is_cuda() || cuda::capture_id() == 0,
        "Pipeline::step: micro-batches of ", form.samples,
        " samples are new, so that ranks must send each other shapes, which a graph "
        "cannot record; run a step on such a batch before the capture");
}

namespace {

Arrays moved(const Arrays& arrays, Device device) {
  Arrays result;
  for (const Array& a : arrays) result.push_back(a.to(device));
  return result;
}

Arrays zeros_of(const MessageInfo& message, Device device) {
  Arrays zeros;
  for (const ArrayInfo& info : message) zeros.emplace_back(info.uninitialized(device)).fill(0);
  return zeros;
}

}  // namespace

void StepRunner::begin_run(const Samples& x, const Samples& t, Recorder* recorder) {
  recorder_ = recorder;
  x_.clear();
  t_.clear();
  const int last = plan_.last_stage();
  if (plan_.has_stage(0)) x_ = moved(x.arrays(), plan_.device_of(0));
  if (plan_.has_stage(last)) t_ = moved(t.arrays(), plan_.device_of(last));
  for (const auto& one : stages_)
    if (one) one->begin_step(batch_.size);
  mailbox_.begin_step(plan_.schedule.stages(), batch_.size);
  counts_.begin_step(plan_.schedule.stages(), batch_, plan_.is_over_ranks());
  learn_shapes();
  link_->note_in(recorder);
  link_->begin_step();
}

void StepRunner::train(const Samples& x, const Samples& t, const Loss& loss, Recorder* recorder) {
  loss_ = {};
  loss_function_ = &loss;
  begin_run(x, t, recorder);
  const int last = plan_.last_stage();
  if (batch_.size == 0 && plan_.has_stage(last))
    counts_.agree(plan_.place.data(), nullptr, 0, false);
  run_actions();
  if (loss_.defined()) loss_ = counts_.mean_of(loss_, last);
  updates_.finish_step(plan_.has_updates());
  link_->end_step();
}

// Shapes of messages -----------------------------------------------------------------------------

// Ranks learn them from the rank before, stage by stage, once for each size of micro-batch.
void StepRunner::learn_shapes() {
  for (int m = 0; m < batch_.size; ++m)
    if (plan_.is_over_ranks() && book_.open(batch_.form_of(m))) learn(m);
}

// Null: the stage gets the inputs of the batch.
const MessageInfo* StepRunner::info_before(int s, const BatchForm& form) const {
  return s == 0 ? nullptr : &book_.at(form, s - 1);
}

void StepRunner::learn(int m) {
  const BatchForm form = batch_.form_of(m);
  for (int s = 0; s < plan_.schedule.stages(); ++s) {
    if (!plan_.has_stage(s)) continue;
    if (s > 0 && !hands_over(plan_.schedule, s - 1))
      book_.learn(form, s - 1, receive_info(plan_.rank_of(s - 1), form));
    if (s == plan_.last_stage()) return;
    const MessageInfo* before = info_before(s, form);
    const Arrays inputs = before ? zeros_of(*before, plan_.device_of(s)) : batch_.part(x_, m);
    const MessageInfo info = info_of(stage(s).try_out(inputs, before, numbers_));
    book_.learn(form, s, info);
    if (!hands_over(plan_.schedule, s))
      plan_.place.comm->send_bytes(pack({batch_.call, batch_.samples, form, info}),
                                   plan_.rank_of(s + 1));
  }
}

// What the rank before has learnt, if it runs the same batch in the same way.
MessageInfo StepRunner::receive_info(int rank, const BatchForm& form) const {
  BoundaryHeader there = unpack(plan_.place.comm->recv_bytes(rank));
  const std::string theirs = text_of(there.samples, there.form),
                    ours = text_of(batch_.samples, form);
  CATENA_CHECK(ValueError, theirs == ours, "Pipeline: rank ", rank, " of the pipeline ", theirs,
               ", rank ", plan_.place.comm->rank(), " ", ours,
               "; all ranks of a pipeline pass the same numbers of samples, and have the model in "
               "the same state");
  CATENA_CHECK(ValueError, there.call == batch_.call, "Pipeline: rank ", rank,
               " of the pipeline is in its call ", there.call, " of step or predict, rank ",
               plan_.place.comm->rank(), " in its call ", batch_.call,
               "; all ranks make the same calls, and go on after an error only if all have it");
  return std::move(there.message);
}

// Actions ----------------------------------------------------------------------------------------

void StepRunner::run_actions() {
  const bool is_empty = batch_.size == 0;
  const std::span<const Action> order = plan_.actions();
  for (size_t i = 0, end; i < order.size(); i = end) {
    const Kind kind = order[i].kind;
    end = i + 1;
    if (is_message(kind)) {
      while (plan_.is_over_ranks() && end < order.size() && is_message(order[end].kind)) ++end;
      if (!is_empty) exchange(order.subspan(i, end - i));
    } else if (!is_empty || kind == Kind::kReduce || kind == Kind::kUpdate) {
      run(order[i]);
    }
  }
}

void StepRunner::run(const Action& action) {
  const bool is_noted = recorder_ != nullptr && action.kind != Kind::kReduce;
  if (is_noted) recorder_->begin(plan_.rank_of(action.stage), action);
  compute(action);
  if (is_noted) recorder_->end();
}

void StepRunner::compute(const Action& action) {
  const tracing::Range traced(tracing::active() ? to_string(action) : "",
                              tracing::Category::kPipeline);
  const int s = action.stage, m = action.micro_batch;
  switch (action.kind) {
    case Kind::kForward: {
      const Variables ys = forward(s, m);
      return s == plan_.last_stage() ? compute_loss(m, ys) : void();
    }
    case Kind::kBackward: return backward(s, m, false);
    case Kind::kBackwardInputs: return backward(s, m, true);
    case Kind::kBackwardWeights:
      // The first stage's inputs want no gradients: its schedule may leave that half out.
      return stage(s).is_split(m) ? stage(s).backward_weights(m) : backward(s, m, false);
    case Kind::kReduce: hand_over_counts(s); return updates_.reduce(s);
    case Kind::kUpdate: hand_over_counts(s); return updates_.update(s);
    default: return;
  }
}

void StepRunner::exchange(std::span<const Action> group) {
  std::vector<Message> messages;
  for (const Action& action : group) {
    const int other = peer_stage(action);
    messages.push_back(
        {action, plan_.rank_of(action.stage), plan_.rank_of(other),
         &book_.at(batch_.form_of(action.micro_batch), std::min(action.stage, other))});
  }
  link_->exchange(messages);
}

// Computation ------------------------------------------------------------------------------------

// To the stage at the other end, if it is on this rank, or to where the send takes it from.
void StepRunner::post(const Action& send, Arrays arrays, const Array& counted) {
  const int from = plan_.rank_of(send.stage), to = plan_.rank_of(peer_stage(send));
  mailbox_.at(from == to ? other_end(send) : send) = {std::move(arrays), made_for(from, to),
                                                      counted};
}

// After what a rank has just made for another one; null if both are on one stream.
Event StepRunner::made_for(int from, int to) const {
  const Device device = plan_.place.devices[size_t(from)];
  const bool stays =
      from == to || (!plan_.is_over_ranks() && device == plan_.place.devices[size_t(to)]);
  return stays || !device.is_cuda() ? Event() : current_stream(device).record();
}

Parcel StepRunner::take(const Action& receive) {
  Parcel parcel = mailbox_.take(receive, plan_.device_of(receive.stage));
  if (recorder_) recorder_->arrived();
  return parcel;
}

// The results, which have gone on to the next stage if there is one.
Variables StepRunner::forward(int s, int m) {
  const MessageInfo* before = info_before(s, batch_.form_of(m));
  const Variables ys = stage(s).forward(
      m, s == 0 ? batch_.part(x_, m) : take({Kind::kRecvInput, s, m}).arrays, before, numbers_);
  if (s == plan_.last_stage()) return ys;
  book_.check(batch_.form_of(m), s, ys, plan_.is_over_ranks());
  Arrays arrays;
  for (const Variable& y : ys) arrays.push_back(y.data());
  post({Kind::kSendOutput, s, m}, std::move(arrays));
  return ys;
}

void StepRunner::compute_loss(int m, const Variables& results) {
  const int s = plan_.last_stage();
  Stage& last = stage(s);
  const DeviceScope device(last.device());
  const RandomSourceScope scope(numbers_.of(static_cast<int>(plan_.model.size()), m));
  const Variable loss = (*loss_function_)(results, batch_.part(t_, m));
  CATENA_CHECK(ValueError, loss.defined(), "Pipeline::step: the loss is undefined");
  CATENA_CHECK(ShapeError, loss.size() == 1, "Pipeline::step: the loss of a micro-batch has shape ",
               loss.shape(), ", expected a single element, its mean");
  CATENA_CHECK(GradientError, loss.requires_grad(),
               "Pipeline::step: the loss does not depend on anything that wants a gradient; is it "
               "computed from data() or under NoBackprop?");
  const int64_t samples = batch_.samples_of(m);
  counts_.agree(plan_.place.data(), mean_of(loss), samples, true);
  const Variable scaled = updates_.scaled(loss);
  last.go_on_to(m, scaled);
  Parcel& start = mailbox_.at({Kind::kRecvGradient, s, m}) = counts_.start_of(scaled, samples);
  const Dtype wide = compute_dtype(loss.dtype());
  const Array value = loss.data().reshape(Shape{}).astype(wide, false);
  const Array share = mean_of(loss)
                          ? multiply(value, start.arrays[0].reshape(Shape{}).astype(wide, false))
                          : multiply(value, batch_.weight_of(m));
  loss_ = loss_.defined() ? add(loss_, share) : share;
}

// Once: to the updates of a stage whose gradients are complete.
void StepRunner::hand_over_counts(int s) {
  Array counted = counts_.sum(s);
  if (batch_.size == 0) counted = zeros({1}, {Dtype::kFloat64, plan_.device_of(s)});
  updates_.set_counted(s, counted, batch_.samples);
}

void StepRunner::backward(int s, int m, bool split) {
  const Parcel parcel = take({Kind::kRecvGradient, s, m});
  counts_.add(s, parcel.counted, batch_.samples_of(m));
  Arrays of_inputs = stage(s).backward(m, parcel.arrays, split);
  if (s > 0) post({Kind::kSendGradient, s, m}, std::move(of_inputs), parcel.counted);
}

// Test passes -------------------------------------------------------------------------------------

namespace {

// Appends the results of a micro-batch to the lists of all. One that is reduced over the samples
// would be joined wrongly, as that of a micro-batch alone.
void keep_results(const Variables& ys, int64_t samples, std::vector<Arrays>& results) {
  results.resize(ys.size());
  for (size_t k = 0; k < ys.size(); ++k) {
    const Shape& shape = ys[k].shape();
    CATENA_CHECK(ShapeError, shape.ndim() > 0 && shape[0] == samples, "Pipeline::predict: result ",
                 k, " of the last stage has shape ", shape, " for a micro-batch of ", samples,
                 samples == 1 ? " sample" : " samples",
                 "; expected the samples as the first axis, along which the results of "
                 "micro-batches are joined. Let the model return a value for each sample, and take "
                 "sums and means of what predict returns");
    results[k].push_back(ys[k].data());
  }
}

}  // namespace

Arrays StepRunner::predict(const Samples& x) {
  begin_run(x, {}, nullptr);
  std::vector<Arrays> results;
  for (int m = 0; m < batch_.size; ++m) predict_part(m, results);
  link_->end_step();
  Arrays whole;
  for (const Arrays& parts : results)
    whole.push_back(parts.size() == 1 ? parts[0] : concatenate(parts, 0));
  return whole;
}

void StepRunner::predict_part(int m, std::vector<Arrays>& results) {
  const auto exchange_one = [&](const Action& message) { exchange({&message, 1}); };
  for (int s = 0; s < plan_.schedule.stages(); ++s) {
    if (!plan_.has_stage(s)) continue;
    if (s > 0 && !hands_over(plan_.schedule, s - 1)) exchange_one({Kind::kRecvInput, s, m});
    const Variables ys = forward(s, m);
    if (s == plan_.last_stage())
      keep_results(ys, batch_.samples_of(m), results);
    else if (!hands_over(plan_.schedule, s))
      exchange_one({Kind::kSendOutput, s, m});
  }
}

}  // namespace catena::parallel::pipeline
