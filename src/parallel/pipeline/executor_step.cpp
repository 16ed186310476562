// Steps and test passes.
#include <algorithm>
#include <optional>
#include <utility>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random_source.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "catena/core/trace.h"
#include "catena/parallel/data_parallel.h"
#include "catena/parallel/no_sync.h"
#include "core/compute_dtype.h"
#include "parallel/pipeline/executor.h"
#include "parallel/synchronised_layers.h"

namespace catena::parallel::pipeline {
namespace {

// The number of samples of a batch, -1 if there is nothing.
int64_t samples_of(const char* who, const Arrays& arrays, int64_t n = -1) {
  for (const Array& a : arrays) {
    CATENA_CHECK(ValueError, a.defined(), "Pipeline::", who,
                 ": an array of the batch is undefined");
    CATENA_CHECK(ShapeError, a.ndim() > 0, "Pipeline::", who,
                 ": an array of the batch has shape (); the first axis must be the samples");
    CATENA_CHECK(ShapeError, n < 0 || a.length() == n, "Pipeline::", who,
                 ": an array of the batch has shape ", a.shape(), ", and one before it ", n,
                 n == 1 ? " sample" : " samples",
                 "; the first axis must be the samples, of the same number in inputs and targets");
    n = a.length();
  }
  return n;
}

Arrays moved(const Arrays& arrays, Device device) {
  Arrays result;
  for (const Array& a : arrays) result.push_back(a.to(device));
  return result;
}

}  // namespace

// A batch ----------------------------------------------------------------------------------------

// The number of samples, -1 if there is nothing; 0 only in a grid. Where all ranks refuse a batch,
// they can go on with the next one. Where one does and the others have begun the step, it must not
// go on as if its next batch were theirs: it forgets the shapes of messages, so that what it sends
// and receives next is a header, with the number of the call.
int64_t Pipeline::Executor::samples_to_train(const Samples& x, const Samples& t) {
  try {
    CATENA_CHECK(GradientError, is_recording(),
                 "Pipeline::step: called under NoBackprop, where nothing is recorded; leave the "
                 "scope to train, and call predict to test");
    const int64_t n = samples_of("step", t.arrays(), samples_of("step", x.arrays()));
    CATENA_CHECK(ValueError,
                 n < 0 || (n == 0 && place_.data != nullptr) || n >= schedule.micro_batches,
                 "Pipeline::step: a batch of ", n, " samples cannot be cut into the ",
                 schedule.micro_batches, " micro-batches of the schedule '", schedule.name,
                 "'; use a larger batch, or a schedule of fewer micro-batches");
    return n;
  } catch (const Error&) {
    learnt_.clear();
    throw;
  }
}

// The micro-batches of n samples.
void Pipeline::Executor::cut_batch(int64_t n, int parts, Boundary::Mode mode) {
  samples_ = n;
  mode_ = mode;
  shards_.clear();
  int64_t begin = 0;
  for (int i = 0; i < parts; ++i) {
    shards_.push_back({begin, shard_size(n, size_t(parts), size_t(i))});
    begin += shards_.back().size;
  }
  new_keys_.clear();
  for (const Shard& shard : shards_) {
    const Boundary::Key key{shard.size, mode};
    const bool is_known =
        is_over_ranks() ? learnt_.count(key) > 0 : boundaries_.empty() || boundaries_[0].knows(key);
    if (!is_known) new_keys_.push_back(key);
  }
  for (const Shard& shard : shards_)
    CATENA_CHECK(Error,
                 !is_over_ranks() || learnt_.count({shard.size, mode}) > 0 ||
                     !place_.comm->device().is_cuda() || cuda::capture_id() == 0,
                 "Pipeline::step: micro-batches of ", shard.size,
                 " samples are new, so that ranks must send each other shapes, which a graph "
                 "cannot record; run a step on such a batch before the capture");
}

void Pipeline::Executor::begin_batch(const Samples& x, const Samples& t) {
  x_.clear();
  t_.clear();
  if (has_stage(0)) x_ = moved(x.arrays(), stage(0).device());
  const int last = schedule.stages() - 1;
  if (has_stage(last)) t_ = moved(t.arrays(), stage(last).device());
}

Arrays Pipeline::Executor::part(const Arrays& batch, int micro_batch) const {
  const Shard& shard = shards_[size_t(micro_batch)];
  Arrays result;
  for (const Array& a : batch) result.push_back(a(Slice(shard.begin, shard.begin + shard.size)));
  return result;
}

void Pipeline::Executor::begin_step() {
  const auto parts = static_cast<int>(shards_.size());
  for (const auto& one : stages_)
    if (one) one->begin_step(parts);
  const std::vector<Parcel> none(shards_.size());
  for (Parcels* parcels : {&inputs_, &gradients_, &outgoing_results_, &outgoing_gradients_})
    parcels->assign(stages_.size(), none);
  losses_.assign(shards_.size(), Variable());
  learn_messages();
  link_->begin_step();
}

// Shapes of messages -----------------------------------------------------------------------------

// Ranks learn them from the rank before, stage by stage, once for each size of micro-batch.
void Pipeline::Executor::learn_messages() {
  if (!is_over_ranks()) return;
  for (size_t m = 0; m < shards_.size(); ++m) {
    const Boundary::Key key = key_of(int(m));
    if (!learnt_.insert(key).second) continue;
    learn(key, has_stage(0) ? part(x_, int(m)) : Arrays());
  }
}

void Pipeline::Executor::learn(const Boundary::Key& key, const Arrays& first_inputs) {
  for (int s = 0; s < schedule.stages(); ++s) {
    if (!has_stage(s)) continue;
    if (s > 0 && rank_of(s - 1) != rank_of(s))
      boundaries_[size_t(s) - 1].learn(key, receive_info(rank_of(s - 1), key));
    if (is_last(s)) return;
    const Variables ys = stage(s).try_out(trial_inputs(s, key, first_inputs), numbers_);
    const MessageInfo info = info_of(ys);
    boundaries_[size_t(s)].learn(key, info);
    if (rank_of(s + 1) != rank_of(s))
      place_.comm->send_bytes(pack({calls_, samples_, key, info}), rank_of(s + 1));
  }
}

// What the rank before has learnt, if it runs the same batch in the same way.
MessageInfo Pipeline::Executor::receive_info(int rank, const Boundary::Key& key) {
  BoundaryHeader there = unpack(place_.comm->recv_bytes(rank));
  const std::string theirs = text_of(there.samples, there.key), ours = text_of(samples_, key);
  CATENA_CHECK(ValueError, theirs == ours, "Pipeline: rank ", rank, " of the pipeline ", theirs,
               ", rank ", place_.comm->rank(), " ", ours,
               "; all ranks of a pipeline pass the same numbers of samples, and have the model in "
               "the same state");
  CATENA_CHECK(ValueError, there.calls == calls_, "Pipeline: rank ", rank,
               " of the pipeline is in its call ", there.calls, " of step or predict, rank ",
               place_.comm->rank(), " in its call ", calls_,
               "; all ranks make the same calls, and go on after an error only if all have it");
  return std::move(there.message);
}

Variables Pipeline::Executor::trial_inputs(int s, const Boundary::Key& key,
                                           const Arrays& first_inputs) {
  Variables xs;
  if (s == 0) {  // as forward makes them
    for (const Array& x : first_inputs) xs.push_back(Variable::constant(x));
    return xs;
  }
  for (const ArrayInfo& info : boundaries_[size_t(s) - 1].at(key)) {
    if (info.same_as >= 0) {
      xs.push_back(xs[size_t(info.same_as)]);
      continue;
    }
    const Array zero = info.uninitialized(stage(s).device());
    zero.fill(0);
    xs.push_back(info.wants_gradient ? Variable(zero) : Variable::constant(zero));
  }
  return xs;
}

// Failures ---------------------------------------------------------------------------------------

// What a step that fails has learnt of shapes may be its mistake.
void Pipeline::Executor::forget_new_shapes() {
  for (const Boundary::Key& key : new_keys_) {
    for (Boundary& boundary : boundaries_) boundary.forget(key);
    learnt_.erase(key);
  }
}

// Runs what one rank may fail in alone. The others then end with its name even if it catches the
// exception and goes on.
template <class F>
auto Pipeline::Executor::or_end_all(const char* what, F part) {
  try {
    return part();
  } catch (const CommError& error) {
    forget_new_shapes();
    end_others(error.what(), true);
    throw;
  } catch (const std::exception& error) {
    forget_new_shapes();
    end_others(message(what, " threw on rank ", rank_in_job(), ": ", error.what()), false);
    throw;
  } catch (...) {
    forget_new_shapes();
    end_others(message(what, " threw on rank ", rank_in_job(), " what is no std::exception"),
               false);
    throw;
  }
}

// In a grid they end others again, until all rows and columns have ended.
void Pipeline::Executor::end_others(const std::string& text, bool by_peer) const {
  for (Communicator* comm : {place_.comm, place_.data, place_.tensor}) {
    if (!comm || comm->size() == 1) continue;
    comm::internals(*comm).note_failure(text, by_peer, -1);
    comm->abort(text);
  }
}

int Pipeline::Executor::rank_in_job() const {
  if (!place_.comm) return 0;
  return comm::internals(*place_.comm).rank_in_job(place_.comm->rank());
}

// Its layers wait for those of the other replicas, in forward passes that it does not make.
void Pipeline::Executor::refuse_synchronised_layers() {
  for (const auto& one : stages_)
    CATENA_CHECK(ValueError, !one || !has_synchronised_layer(one->units()),
                 "Pipeline::step: this replica has no samples, but the model has "
                 "BatchNormalization layers that are synchronised over ranks and wait for it; give "
                 "each replica at least ",
                 schedule.micro_batches, " samples in every step");
}

// Actions ----------------------------------------------------------------------------------------

Array Pipeline::Executor::step(const Samples& x, const Samples& t, const Loss& loss) {
  const OnlyCall only(*this, "step");
  return make_step(x, t, loss);
}

Array Pipeline::Executor::make_step(const Samples& x, const Samples& t, const Loss& loss) {
  require_setup("step");
  require_same_units("step");
  last_step_ = LastStep::kThrown;
  ++calls_;
  const comm::PurposeScope purpose(place_.comm, "pipeline step");
  const tracing::Range traced("Pipeline::step", tracing::Category::kStep);
  const int64_t n = samples_to_train(x, t);
  const bool is_empty = n == 0;
  cut_batch(std::max<int64_t>(n, 0), is_empty ? 0 : schedule.micro_batches,
            model.training() ? Boundary::Mode::kTrain : Boundary::Mode::kTrainInTestState);
  or_end_all("a pipeline step", [&] {
    const int last = schedule.stages() - 1;
    CATENA_CHECK(ValueError,
                 n >= 0 && !(has_stage(0) && x.empty()) && !(has_stage(last) && t.empty()),
                 "Pipeline::step: the rank of the first stage needs x, that of the last one t, and "
                 "every other one of them, for the number of samples");
    if (is_empty) refuse_synchronised_layers();
    run_step(x, t, loss);
  });
  if (place_.comm && !place_.data) comm::internals(*place_.comm).note_update();
  last_step_ = LastStep::kDone;
  return loss_;
}

void Pipeline::Executor::run_step(const Samples& x, const Samples& t, const Loss& loss) {
  std::optional<NoSync> only_add;
  if (place_.data) only_add.emplace(*place_.data);
  const Device device = device_of_rank(0);
  numbers_.begin_step(next_step_, device);
  updates_.begin_step();
  loss_ = {};
  loss_function_ = &loss;
  begin_batch(x, t);
  begin_step();
  run_actions();
  updates_.finish_step(has_updates_);
  link_->end_step();
  numbers_.end_step(next_step_);
}

void Pipeline::Executor::run_actions() {
  const bool is_empty = shards_.empty();
  for (size_t i = 0; i < order_.size();) {
    const Kind kind = order_[i].action.kind;
    size_t end = i + 1;
    if (is_message(kind)) {
      while (is_over_ranks() && end < order_.size() && is_message(order_[end].action.kind)) ++end;
      if (!is_empty) exchange(&order_[i], &order_[i] + (end - i));
    } else if (!is_empty || kind == Kind::kReduce || kind == Kind::kUpdate) {
      run(order_[i].action);
    }
    i = end;
  }
}

// What there is to wait for has come to the current stream.
void Pipeline::Executor::note_arrival() {
  if (recorder_) recorder_->arrived();
}

void Pipeline::Executor::run(const Action& action) {
  if (!recorder_ || action.kind == Kind::kReduce) return compute(action);
  recorder_->begin(rank_of(action.stage), action);
  compute(action);
  recorder_->end();
}

void Pipeline::Executor::compute(const Action& action) {
  const tracing::Range traced(tracing::active() ? to_string(action) : "",
                              tracing::Category::kPipeline);
  const int s = action.stage, m = action.micro_batch;
  switch (action.kind) {
    case Kind::kForward:
      return forward(s, m);
    case Kind::kBackward:
      return backward(s, m, false);
    case Kind::kBackwardInputs:
      return backward(s, m, true);
    case Kind::kBackwardWeights:
      // The first stage's inputs want no gradients: its schedule may leave that half out.
      return stage(s).is_split(m) ? stage(s).backward_weights(m) : backward(s, m, false);
    case Kind::kReduce:
      return updates_.reduce(s);
    case Kind::kUpdate:
      return updates_.update(s);
    default:
      return;
  }
}

void Pipeline::Executor::exchange(const Issued* begin, const Issued* end) {
  std::vector<Message> group;
  for (const Issued* issued = begin; issued != end; ++issued)
    group.push_back(message_of(issued->action));
  link_->exchange(group);
}

Message Pipeline::Executor::message_of(const Action& action) {
  const auto s = size_t(action.stage), m = size_t(action.micro_batch);
  const int here = rank_of(action.stage);
  const Boundary::Key key = key_of(action.micro_batch);
  switch (action.kind) {
    case Kind::kSendOutput:
      return {true,
              here,
              rank_of(action.stage + 1),
              &outgoing_results_[s][m],
              &boundaries_[s].at(key),
              false,
              action};
    case Kind::kRecvInput:
      return {false,          rank_of(action.stage - 1),   here,
              &inputs_[s][m], &boundaries_[s - 1].at(key), false,
              action};
    case Kind::kSendGradient:
      return {true,
              here,
              rank_of(action.stage - 1),
              &outgoing_gradients_[s][m],
              &boundaries_[s - 1].at(key),
              true,
              action};
    default:
      return {
          false, rank_of(action.stage + 1), here, &gradients_[s][m], &boundaries_[s].at(key), true,
          action};
  }
}

// Computation ------------------------------------------------------------------------------------

Arrays Pipeline::Executor::take_inputs(int s, int m) {
  if (s == 0) return part(x_, m);
  Parcel parcel = std::exchange(inputs_[size_t(s)][size_t(m)], {});
  wait_for(parcel, stage(s).device());
  note_arrival();
  return std::move(parcel.arrays);
}

void Pipeline::Executor::forward(int s, int m) {
  const MessageInfo* before = s == 0 ? nullptr : &boundaries_[size_t(s) - 1].at(key_of(m));
  const Variables ys = stage(s).forward(m, take_inputs(s, m), before, numbers_);
  if (is_last(s)) return compute_loss(m);
  boundaries_[size_t(s)].check(key_of(m), ys, is_over_ranks());
  hand_on(s, m, ys);
}

// To the next stage, if it is on this rank, or to where a send takes it from.
void Pipeline::Executor::hand_on(int s, int m, const Variables& results) {
  Arrays arrays;
  for (const Variable& y : results) arrays.push_back(y.data());
  Parcel& target = rank_of(s + 1) == rank_of(s) ? inputs_[size_t(s) + 1][size_t(m)]
                                                : outgoing_results_[size_t(s)][size_t(m)];
  target = {std::move(arrays), made_for(s, s + 1)};
}

// After what a stage has just made for another one; null if both are on one stream.
Event Pipeline::Executor::made_for(int s, int other) const {
  const int from = rank_of(s), to = rank_of(other);
  const Device device = device_of_rank(from);
  const bool stays = from == to || (!is_over_ranks() && device == device_of_rank(to));
  return stays || !device.is_cuda() ? Event() : current_stream(device).record();
}

void Pipeline::Executor::compute_loss(int m) {
  Stage& last = stage(schedule.stages() - 1);
  const DeviceScope device(last.device());
  const RandomSourceScope scope(numbers_.of(static_cast<int>(model.size()), m));
  const Variable loss = (*loss_function_)(last.take_results(m), part(t_, m));
  CATENA_CHECK(ValueError, loss.defined(), "Pipeline::step: the loss is undefined");
  CATENA_CHECK(ShapeError, loss.size() == 1, "Pipeline::step: the loss of a micro-batch has shape ",
               loss.shape(), ", expected a single element, its mean");
  CATENA_CHECK(GradientError, loss.requires_grad(),
               "Pipeline::step: the loss does not depend on anything that wants a gradient; is it "
               "computed from data() or under NoBackprop?");
  const Array value = loss.data().reshape(Shape{}).astype(compute_dtype(loss.dtype()), false);
  const Array share = multiply(value, weight_of(m));
  loss_ = loss_.defined() ? add(loss_, share) : share;
  losses_[size_t(m)] = updates_.scaled(loss);
}

void Pipeline::Executor::backward(int s, int m, bool split) {
  Variables results;
  Arrays gradients;
  if (is_last(s)) {
    results = {std::exchange(losses_[size_t(m)], {})};
    gradients = {full_like(results[0].data(), weight_of(m))};
  } else {
    Parcel parcel = std::exchange(gradients_[size_t(s)][size_t(m)], {});
    wait_for(parcel, stage(s).device());
    note_arrival();
    results = stage(s).take_results(m);
    gradients = std::move(parcel.arrays);
  }
  Arrays of_inputs = stage(s).backward(m, results, gradients, split);
  if (s == 0) return;
  const bool stays = rank_of(s - 1) == rank_of(s);
  Parcel& target =
      stays ? gradients_[size_t(s) - 1][size_t(m)] : outgoing_gradients_[size_t(s)][size_t(m)];
  target = {std::move(of_inputs), made_for(s, s - 1)};
}

// A step that is measured -------------------------------------------------------------------------

Simulation Pipeline::Executor::measure(const Samples& x, const Samples& t, const Loss& loss,
                                       int steps) {
  const OnlyCall only(*this, "measure");
  CATENA_CHECK(ValueError, steps >= 1, "Pipeline::measure: ", steps, " steps; expected at least 1");
  std::map<int, Device> devices;
  for (int s = 0; s < schedule.stages(); ++s)
    if (has_stage(s)) devices[rank_of(s)] = stage(s).device();
  for (const auto& [rank, device] : devices)
    CATENA_CHECK(
        Error, !device.is_cuda() || !cuda::is_capturing(device),
        "Pipeline::measure: it waits for the devices, which a graph cannot record; call it "
        "outside of the capture");
  // Ends with the call, exceptions included.
  struct Recording {
    Executor& executor;
    Recorder recorder;
    Recording(Executor& e, std::map<int, Device> d) : executor(e), recorder(std::move(d)) {
      executor.recorder_ = &recorder;
      executor.link_->note_in(&recorder);
    }
    ~Recording() {
      executor.recorder_ = nullptr;
      executor.link_->note_in(nullptr);
    }
  } recording(*this, std::move(devices));
  recording.recorder.begin();
  if (is_over_ranks()) place_.comm->barrier();
  const double start = Recorder::now(current_stream(cpu())).seconds;
  for (int i = 0; i < steps; ++i) {
    make_step(x, t, loss);
    recording.recorder.next_step();
  }
  std::vector<Span> spans = recording.recorder.spans();
  if (!is_over_ranks()) return measured(schedule, std::move(spans));
  return measured(schedule, gathered(std::move(spans), start));
}

// Ranks of one host share its clock; those of several count from the end of the same barrier.
std::vector<Span> Pipeline::Executor::gathered(std::vector<Span> spans, double start) const {
  Communicator& comm = *place_.comm;
  if (comm.inter_size() > 1)
    for (Span& span : spans)
      for (double* time : {&span.begin, &span.end, &span.waits_from}) *time -= start;
  std::vector<Span> all;
  for (const std::vector<Span>& part : comm.all_gather_object(spans))
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Test passes -------------------------------------------------------------------------------------

Arrays Pipeline::Executor::predict(const Samples& x) {
  const OnlyCall only(*this, "predict");
  require_setup("predict");
  require_same_units("predict");
  ++calls_;
  const comm::PurposeScope purpose(place_.comm, "pipeline predict");
  const int64_t n = or_end_all("Pipeline::predict", [&] {
    const int64_t own = has_stage(0) ? samples_of("predict", x.arrays()) : 0;
    return is_over_ranks() ? place_.comm->broadcast_object(own, rank_of(0)) : own;
  });
  CATENA_CHECK(ValueError, n > 0,
               "Pipeline::predict: the rank of the first stage needs x, of at "
               "least one sample");
  const TestScope test(model);
  const NoBackprop no_graph;
  cut_batch(n, static_cast<int>(std::min<int64_t>(n, schedule.micro_batches)),
            Boundary::Mode::kPredict);
  return or_end_all("Pipeline::predict", [&] { return run_prediction(x); });
}

Arrays Pipeline::Executor::run_prediction(const Samples& x) {
  begin_batch(x, {});
  begin_step();
  std::vector<Arrays> results;
  for (size_t m = 0; m < shards_.size(); ++m) predict_part(int(m), results);
  link_->end_step();
  Arrays whole;
  for (const Arrays& parts : results)
    whole.push_back(parts.size() == 1 ? parts[0] : concatenate(parts, 0));
  return whole;
}

// Appended to `results`, which has a list for each. A result that is reduced over the samples would
// be joined wrongly, as that of a micro-batch alone.
void Pipeline::Executor::keep_results(const Variables& ys, int64_t samples,
                                      std::vector<Arrays>& results) {
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

void Pipeline::Executor::predict_part(int m, std::vector<Arrays>& results) {
  for (int s = 0; s < schedule.stages(); ++s) {
    if (!has_stage(s)) continue;
    if (s > 0 && rank_of(s - 1) != rank_of(s)) {
      const Issued receive{rank_of(s), {Kind::kRecvInput, s, m}};
      exchange(&receive, &receive + 1);
    }
    const Variables ys = stage(s).forward(m, take_inputs(s, m), nullptr, numbers_);
    if (is_last(s)) return keep_results(ys, shards_[size_t(m)].size, results);
    boundaries_[size_t(s)].check(key_of(m), ys, is_over_ranks());
    hand_on(s, m, ys);
    if (rank_of(s + 1) == rank_of(s)) continue;
    const Issued send{rank_of(s), {Kind::kSendOutput, s, m}};
    exchange(&send, &send + 1);
  }
}

}  // namespace catena::parallel::pipeline
