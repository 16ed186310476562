#include "catena/parallel/pipeline/pipeline.h"

#include <algorithm>
#include <map>
#include <utility>

#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "catena/parallel/persistents.h"
#include "catena/parallel/sum_over_ranks.h"
#include "parallel/pipeline/executor.h"

namespace catena::parallel::pipeline {

void Loss::check_single(size_t results, size_t targets) {
  CATENA_CHECK(ValueError, results == 1 && targets == 1,
               "Pipeline::step: the loss takes one result and one target, got ", results, " and ",
               targets, "; write it as a function of (const Variables&, const Arrays&)");
}

namespace {

Communicator& known(const CommunicatorPtr& comm) {
  CATENA_CHECK(ValueError, comm != nullptr,
               "Pipeline: the communicator is null; make it with create_communicator");
  return *comm;
}

// The ranks of a stage: along the axes that neither divide the batch nor the model into stages.
Communicator& layers_of(const Communicator& stages, const DataAxes& axes) {
  CATENA_CHECK(ValueError, stages.axis().mesh != 0,
               "Pipeline: the communicator of the stages is not of a mesh; give mesh[\"pipeline\"] "
               "of the mesh in DataAxes, with the name of its axis");
  std::vector<std::string> names;
  for (const Mesh::Axis& axis : axes.mesh.axes()) {
    const auto is_among = [&](const std::vector<std::string>& taken) {
      return std::find(taken.begin(), taken.end(), axis.name) != taken.end();
    };
    if (!is_among(axes.batch) && !is_among(stages.axis().names)) names.push_back(axis.name);
  }
  return axes.mesh.over(names);
}

}  // namespace

Pipeline::Pipeline(Sequence& model, const Cut& cut, Schedule schedule, std::vector<Device> devices,
                   const PipelineOptions& options)
    : executor_(std::make_unique<Executor>(
          Plan(model, cut, std::move(schedule), Place{std::move(devices)}, options))) {}
Pipeline::Pipeline(Sequence& model, const Cut& cut, Schedule schedule, Communicator& comm,
                   const PipelineOptions& options)
    : executor_(std::make_unique<Executor>(
          Plan(model, cut, std::move(schedule), Place{{}, &comm}, options))) {}
Pipeline::Pipeline(Sequence& model, const Cut& cut, Schedule schedule, const CommunicatorPtr& comm,
                   const PipelineOptions& options)
    : Pipeline(model, cut, std::move(schedule), known(comm), options) {}
Pipeline::Pipeline(Sequence& model, const Cut& cut, Schedule schedule, Communicator& comm,
                   const DataAxes& axes, const PipelineOptions& options)
    : executor_(std::make_unique<Executor>(Plan(model, cut, std::move(schedule),
                                                Place{{}, &comm, axes, &layers_of(comm, axes)},
                                                options))) {}
Pipeline::Pipeline(Sequence& model, const Cut& cut, Schedule schedule, const Grid& grid,
                   const PipelineOptions& options)
    : executor_(std::make_unique<Executor>(
          Plan(model, cut, std::move(schedule),
               Place{{}, &grid.pipeline(), grid.data(), &grid.tensor()}, options))) {}
Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;

void Pipeline::setup_with(const std::function<std::unique_ptr<Optimizer>()>& make_rule) {
  executor_->setup(make_rule);
}

// Steps ------------------------------------------------------------------------------------------

Array Pipeline::step(const Samples& x, const Samples& t, const Loss& loss) {
  const auto only = executor_->begin_call("step");
  return executor_->step(x, t, loss, nullptr);
}

Arrays Pipeline::predict(const Samples& x) {
  const auto only = executor_->begin_call("predict");
  return executor_->predict(x);
}

namespace {

// Ranks of one host share its clock; those of several count from the end of the same barrier.
std::vector<Span> gathered(Communicator& comm, std::vector<Span> spans, double start) {
  if (comm.inter_size() > 1)
    for (Span& span : spans)
      for (double* time : {&span.begin, &span.end, &span.waits_from}) *time -= start;
  std::vector<Span> all;
  for (const std::vector<Span>& part : comm.all_gather_object(spans))
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

Simulation Pipeline::measure(const Samples& x, const Samples& t, const Loss& loss, int steps) {
  const auto only = executor_->begin_call("measure");
  const Plan& plan = executor_->plan;
  CATENA_CHECK(ValueError, steps >= 1, "Pipeline::measure: ", steps, " steps; expected at least 1");
  std::map<int, Device> devices;
  for (int s = 0; s < plan.schedule.stages(); ++s)
    if (plan.has_stage(s)) devices[plan.rank_of(s)] = plan.device_of(s);
  for (const auto& [rank, device] : devices)
    CATENA_CHECK(
        Error, !device.is_cuda() || !cuda::is_capturing(device),
        "Pipeline::measure: it waits for the devices, which a graph cannot record; call it "
        "outside of the capture");
  Recorder recorder(std::move(devices));
  recorder.begin();
  if (plan.is_over_ranks()) plan.place.comm->barrier();
  const double start = Recorder::now(current_stream(cpu())).seconds;
  for (int i = 0; i < steps; ++i) {
    executor_->step(x, t, loss, &recorder);
    recorder.next_step();
  }
  std::vector<Span> spans = recorder.spans();
  if (plan.is_over_ranks()) spans = gathered(*plan.place.comm, std::move(spans), start);
  return measured(plan.schedule, std::move(spans));
}

double Pipeline::loss() {
  const Plan& plan = executor_->plan;
  const auto only = executor_->begin_call("loss");
  const comm::PurposeScope purpose(plan.place.comm, "pipeline loss");
  CATENA_CHECK(ValueError, executor_->state >= Executor::State::kInStep,
               "Pipeline::loss: there was no step yet");
  CATENA_CHECK(ValueError, executor_->state == Executor::State::kStepped,
               "Pipeline::loss: the last step has thrown, so that it has no loss; make a step that "
               "succeeds first");
  const int last = plan.last_stage();
  const Array& mean = executor_->runner.loss();
  const Array counted = executor_->runner.counts().declared_sum(last);
  struct Own {
    double value, counted, declares;
  } own{mean.defined() ? mean.item<double>() : 0, counted.defined() ? counted.item<double>() : 0,
        counted.defined() ? 1.0 : 0.0};
  if (plan.is_over_ranks()) own = plan.place.comm->broadcast_object(own, plan.rank_of(last));
  if (!plan.place.data()) return own.value;
  const double weight = executor_->weight.value_or(1.0 / plan.place.data()->size());
  double sums[] = {own.value * weight, own.value * own.counted, own.counted, own.declares};
  sum_over_ranks(sums, plan.place.data());
  if (sums[3] == 0) return sums[0];
  return sums[2] > 0 ? sums[1] / sums[2] : 0;
}

// Between steps ----------------------------------------------------------------------------------

void Pipeline::set_batch_weight(int64_t n_local, int64_t n_global) {
  executor_->require_setup("set_batch_weight");
  CATENA_CHECK(ValueError, executor_->plan.place.data() != nullptr,
               "Pipeline::set_batch_weight: there are no replicas; make the pipeline with a Grid");
  CATENA_CHECK(
      ValueError, n_local >= 0 && n_global > 0 && n_local <= n_global,
      "Pipeline::set_batch_weight: expected 0 <= n_local <= n_global and n_global > 0, got ",
      n_local, " of ", n_global);
  executor_->updates.set_batch_weight(n_local, n_global);
  executor_->weight = static_cast<double>(n_local) / static_cast<double>(n_global);
}

void Pipeline::set_lr(double lr) {
  executor_->require_setup("set_lr");
  for (Optimizer* optimizer : optimizers()) optimizer->set_lr(lr);
}

void Pipeline::prepare_for_capture() {
  executor_->require_setup("prepare_for_capture");
  executor_->updates.prepare_for_capture();
}

void Pipeline::average_persistents() {
  const Plan& plan = executor_->plan;
  const auto only = executor_->begin_call("average_persistents");
  const comm::PurposeScope purpose(plan.place.comm, "pipeline average_persistents");
  executor_->require_setup("average_persistents");
  if (!plan.place.data()) return;
  for (int s = 0; s < plan.schedule.stages(); ++s)
    if (plan.has_stage(s))
      parallel::average_persistents(executor_->runner.stage(s).units(), plan.place.data());
}

// Stage by stage, array by array, in the same order on the owner and on the root.
void Pipeline::collect(int root) {
  const Plan& plan = executor_->plan;
  const auto only = executor_->begin_call("collect");
  const comm::PurposeScope purpose(plan.place.comm, "pipeline collect");
  CATENA_CHECK(ValueError, root >= 0 && root < plan.schedule.ranks(), "Pipeline::collect: rank ",
               root, " of ", plan.schedule.ranks(), " ranks");
  if (!plan.is_over_ranks()) return;
  Communicator& comm = *plan.place.comm;
  const auto move = [&](int owner, const auto& values) {
    if (comm.rank() == owner) {
      comm.send(values.data(), root);
    } else {
      const Array received = Array::uninitialized(values.shape(), values.dtype(), comm.device());
      comm.recv(received, owner);
      values.copy_from(received);
    }
  };
  for (int s = 0; s < plan.schedule.stages(); ++s) {
    const int owner = plan.rank_of(s);
    if (owner == root || (comm.rank() != owner && comm.rank() != root)) continue;
    UnitRange units = plan.units(s);
    for (const auto& [path, p] : units.named_parameters()) move(owner, p);
    for (const auto& [path, p] : units.named_persistents()) move(owner, p);
  }
}

int64_t Pipeline::steps() const { return executor_->numbers.steps(); }
void Pipeline::set_steps(int64_t n) {
  CATENA_CHECK(ValueError, n >= 0, "Pipeline::set_steps: expected at least 0 steps, got ", n);
  executor_->numbers.set_steps(n);
}
uint64_t Pipeline::seed() const { return executor_->numbers.seed(); }
void Pipeline::set_seed(uint64_t seed) { executor_->numbers.set_seed(seed); }

// Parts ------------------------------------------------------------------------------------------

namespace {

void check_stage(const char* who, int stage, const Schedule& schedule) {
  CATENA_CHECK(ValueError, stage >= 0 && stage < schedule.stages(), "Pipeline::", who, ": stage ",
               stage, " of ", schedule.stages(), " stages");
}

}  // namespace

bool Pipeline::has_stage(int stage) const {
  check_stage("has_stage", stage, schedule());
  return executor_->plan.has_stage(stage);
}
Device Pipeline::device_of(int stage) const {
  CATENA_CHECK(ValueError, has_stage(stage), "Pipeline::device_of: stage ", stage,
               " is on another rank");
  return executor_->plan.device_of(stage);
}
Optimizer& Pipeline::optimizer(int stage) {
  executor_->require_setup("optimizer");
  CATENA_CHECK(ValueError, has_stage(stage), "Pipeline::optimizer: stage ", stage,
               " is on another rank");
  Optimizer* optimizer = executor_->updates.optimizer(stage);
  CATENA_CHECK(ValueError, optimizer != nullptr, "Pipeline::optimizer: stage ", stage,
               " has no parameters");
  return *optimizer;
}
std::vector<Optimizer*> Pipeline::optimizers() {
  executor_->require_setup("optimizers");
  std::vector<Optimizer*> result;
  for (int s = 0; s < schedule().stages(); ++s)
    if (Optimizer* optimizer = executor_->updates.optimizer(s)) result.push_back(optimizer);
  return result;
}
const Schedule& Pipeline::schedule() const { return executor_->plan.schedule; }
const Cut& Pipeline::cut() const { return executor_->plan.cut; }
Sequence& Pipeline::model() const { return executor_->plan.model; }

}  // namespace catena::parallel::pipeline
