// Steps and test passes.
#include "parallel/pipeline/executor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/comm/internals.h"
#include "catena/core/trace.h"
#include "catena/parallel/no_sync.h"
#include "parallel/synchronised_layers.h"

namespace catena::parallel::pipeline {

Pipeline::Executor::Executor(Plan plan_given)
    : plan(std::move(plan_given)),
      updates(plan.model, plan.options.clip_norm, plan.is_over_ranks() ? plan.place.comm : nullptr,
              plan.place.replicas, plan.place.tensor),
      numbers(plan.place.data() ? plan.place.data()->rank() : 0),
      runner(plan, updates, numbers) {}

Pipeline::Executor::OnlyCall Pipeline::Executor::begin_call(const char* who) {
  const char* other = nullptr;
  CATENA_CHECK(ValueError, running_.compare_exchange_strong(other, who), "Pipeline::", who,
               ": called while Pipeline::", other,
               " runs, by one of the model's units, by the loss or by another thread; call it "
               "before or after");
  return OnlyCall(&running_);
}

void Pipeline::Executor::require_setup(const char* who) const {
  CATENA_CHECK(ValueError, state != State::kNew, "Pipeline::", who,
               ": the pipeline is not set up; call setup([] { return optimizers::Adam(1e-3); }) "
               "or with another rule first");
}

// Batches ----------------------------------------------------------------------------------------

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

}  // namespace

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
    CATENA_CHECK(
        ValueError,
        n < 0 || (n == 0 && plan.place.data() != nullptr) || n >= plan.schedule.micro_batches,
        "Pipeline::step: a batch of ", n, " samples cannot be cut into the ",
        plan.schedule.micro_batches, " micro-batches of the schedule '", plan.schedule.name,
        "'; use a larger batch, or a schedule of fewer micro-batches");
    return n;
  } catch (const Error&) {
    if (plan.is_over_ranks()) runner.forget_all_shapes();
    throw;
  }
}

// Its layers wait for those of the other replicas, in forward passes that it does not make.
void Pipeline::Executor::refuse_synchronised_layers() {
  for (int s = 0; s < plan.schedule.stages(); ++s)
    CATENA_CHECK(ValueError, !plan.has_stage(s) || !has_synchronised_layer(runner.stage(s).units()),
                 "Pipeline::step: this replica has no samples, but the model has "
                 "BatchNormalization layers that are synchronised over ranks and wait for it; give "
                 "each replica at least ",
                 plan.schedule.micro_batches, " samples in every step");
}

// Failures ---------------------------------------------------------------------------------------

// Runs what one rank may fail in alone.
template <class F>
auto Pipeline::Executor::or_end_all(const char* what, F part) {
  const auto threw = [&](const char* text) {
    const auto& comm = plan.place.comm;
    const int rank = comm ? comm::internals(*comm).rank_in_job(comm->rank()) : 0;
    return message(what, " threw on rank ", rank, text);
  };
  try {
    return part();
  } catch (const CommError& error) {
    end_all(error.what(), true);
    throw;
  } catch (const std::exception& error) {
    end_all(threw(": ") + error.what(), false);
    throw;
  } catch (...) {
    end_all(threw(" what is no std::exception"), false);
    throw;
  }
}

// The others end with the name of this rank even if it catches the exception and goes on. In a grid
// they end others again, until all rows and columns have ended.
void Pipeline::Executor::end_all(const std::string& text, bool by_peer) {
  runner.forget_new_shapes();
  for (Communicator* comm : plan.place.communicators()) {
    if (comm->size() == 1) continue;
    comm::internals(*comm).note_failure(text, by_peer, -1);
    comm->abort(text);
  }
}

// Steps ------------------------------------------------------------------------------------------

Array Pipeline::Executor::step(const Samples& x, const Samples& t, const Loss& loss,
                               Recorder* recorder) {
  require_setup("step");
  plan.require_same_units("step");
  state = State::kInStep;
  ++calls;
  const comm::PurposeScope purpose(plan.place.comm, "pipeline step");
  const tracing::Range traced("Pipeline::step", tracing::Category::kStep);
  const int64_t n = samples_to_train(x, t);
  const bool is_empty = n == 0;
  runner.begin_batch({std::max<int64_t>(n, 0), is_empty ? 0 : plan.schedule.micro_batches,
                      plan.model.training() ? RunMode::kTrain : RunMode::kTrainInTestState, calls});
  or_end_all("a pipeline step", [&] {
    CATENA_CHECK(ValueError,
                 n >= 0 && !(plan.has_stage(0) && x.empty()) &&
                     !(plan.has_stage(plan.last_stage()) && t.empty()),
                 "Pipeline::step: the rank of the first stage needs x, that of the last one t, and "
                 "every other one of them, for the number of samples");
    if (is_empty) refuse_synchronised_layers();
    std::optional<NoSync> only_add;
    if (plan.place.data()) only_add.emplace(*plan.place.data());
    numbers.begin_step(plan.place.devices[0]);
    updates.begin_step();
    runner.train(x, t, loss, recorder);
    numbers.end_step();
  });
  if (plan.place.comm && !plan.place.data()) comm::internals(*plan.place.comm).note_update();
  state = State::kStepped;
  return runner.loss();
}

Arrays Pipeline::Executor::predict(const Samples& x) {
  require_setup("predict");
  plan.require_same_units("predict");
  ++calls;
  const comm::PurposeScope purpose(plan.place.comm, "pipeline predict");
  const int64_t n = or_end_all("Pipeline::predict", [&] {
    const int64_t own = plan.has_stage(0) ? samples_of("predict", x.arrays()) : 0;
    return plan.is_over_ranks() ? plan.place.comm->broadcast_object(own, plan.rank_of(0)) : own;
  });
  CATENA_CHECK(ValueError, n > 0,
               "Pipeline::predict: the rank of the first stage needs x, of at "
               "least one sample");
  const TestScope test(plan.model);
  const NoBackprop no_graph;
  runner.begin_batch({n, static_cast<int>(std::min<int64_t>(n, plan.schedule.micro_batches)),
                      RunMode::kPredict, calls});
  return or_end_all("Pipeline::predict", [&] { return runner.predict(x); });
}

}  // namespace catena::parallel::pipeline
