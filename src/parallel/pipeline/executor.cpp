// What an executor is made of, and the interface of Pipeline.
#include "parallel/pipeline/executor.h"

#include <algorithm>

#include "catena/array/random.h"

namespace catena::parallel::pipeline {
namespace {

Schedule completed(Schedule schedule, const PipelineOptions& options) {
  const auto ends = [](const Action& a) {
    return a.kind == Kind::kReduce || a.kind == Kind::kUpdate;
  };
  bool has_ends = !options.updates;
  for (const auto& list : schedule.actions) has_ends |= std::any_of(list.begin(), list.end(), ends);
  if (!has_ends) schedule = with_updates(std::move(schedule));
  check(schedule);
  return schedule;
}

bool has_action(const Schedule& schedule, Kind kind, int stage) {
  for (const auto& list : schedule.actions)
    for (const Action& action : list)
      if (action.kind == kind && action.stage == stage) return true;
  return false;
}

}  // namespace

Pipeline::Executor::Executor(Sequence& model_given, const Cut& cut_given, Schedule schedule_given,
                             Place place, const PipelineOptions& options)
    : model(model_given),
      cut(cut_given),
      schedule(completed(std::move(schedule_given), options)),
      place_(std::move(place)),
      options_(options),
      updates_(model_given, options.clip_norm, is_over_ranks() ? place_.comm : nullptr, place_.data,
               place_.tensor, options.sliced),
      numbers_(0),
      size_(model_given.size()) {
  check_fit();
  check_updates();
  if (place_.comm) keep_comm_ = place_.comm->weak_from_this().lock();
  if (place_.data) keep_data_ = place_.data->weak_from_this().lock();
  if (place_.tensor) keep_tensor_ = place_.tensor->weak_from_this().lock();
  if (place_.comm) place_.devices.assign(size_t(schedule.ranks()), place_.comm->device());
  model.untie();
  for (int s = 0; s < schedule.stages(); ++s) {
    const bool is_here = !is_over_ranks() || rank_of(s) == place_.comm->rank();
    const auto& again = options.recompute;
    const bool recomputes = std::find(again.begin(), again.end(), s) != again.end();
    const UnitRange units(model, cut.first[size_t(s)], cut.end(s, model.size()));
    stages_.push_back(
        is_here ? std::make_unique<Stage>(s, units, device_of_rank(rank_of(s)), recomputes)
                : nullptr);
    if (!is_last(s)) boundaries_.emplace_back(s);
  }
  has_updates_ = has_action(schedule, Kind::kUpdate, 0);
  for (const Issued& issued : issue_order(schedule)) {
    if (!is_over_ranks() || issued.rank == place_.comm->rank()) order_.push_back(issued);
  }
  link_ = is_over_ranks() ? make_rank_link(*place_.comm, options.receives_wait)
                          : make_local_link(place_.devices);
}

Device Pipeline::Executor::device_of_rank(int rank) const { return place_.devices[size_t(rank)]; }

void Pipeline::Executor::check_fit() const {
  CATENA_CHECK(ValueError, cut.stages() == schedule.stages(), "Pipeline: the cut has ",
               cut.stages(), " stages, the schedule '", schedule.name, "' ", schedule.stages(),
               "; use partition(model, schedule.stages())");
  cut.check(model.size());
  if (place_.comm) {
    CATENA_CHECK(ValueError, place_.comm->size() == schedule.ranks(), "Pipeline: the schedule '",
                 schedule.name, "' is for ", schedule.ranks(), " ranks, the communicator has ",
                 place_.comm->size());
  } else {
    CATENA_CHECK(ValueError, static_cast<int>(place_.devices.size()) == schedule.ranks(),
                 "Pipeline: the schedule '", schedule.name, "' is for ", schedule.ranks(),
                 " ranks, got ", place_.devices.size(),
                 " devices; give one for each rank, the same one several times if need be");
  }
  for (const int s : options_.recompute)
    CATENA_CHECK(ValueError, s >= 0 && s < schedule.stages(), "Pipeline: stage ", s,
                 " is to be recomputed, of ", schedule.stages(), " stages");
  CATENA_CHECK(ValueError,
               model.size() <= size_t(UnitNumbers::kMostUnits) &&
                   schedule.micro_batches <= UnitNumbers::kMostMicroBatches,
               "Pipeline: ", model.size(), " units and ", schedule.micro_batches,
               " micro-batches; at most ", UnitNumbers::kMostUnits, " and ",
               UnitNumbers::kMostMicroBatches, " have random numbers of their own");
}

// All stages are updated, or none.
void Pipeline::Executor::check_updates() const {
  std::string with, without;
  for (int s = 0; s < schedule.stages(); ++s) {
    std::string& text = has_action(schedule, Kind::kUpdate, s) ? with : without;
    text += message(text.empty() ? "" : ", ", s);
  }
  CATENA_CHECK(ValueError, with.empty() || without.empty(), "Pipeline: the schedule '",
               schedule.name, "' has kUpdate for stages ", with, ", and none for stages ", without,
               "; give every stage one, or none at all: with_updates adds them to a schedule that "
               "has no kReduce and no kUpdate");
  CATENA_CHECK(ValueError, options_.clip_norm == 0 || !with.empty(), "Pipeline: clip_norm is ",
               options_.clip_norm,
               ", but the schedule has no updates, in which gradients are clipped; leave clip_norm "
               "out, or set updates = true");
}

void Pipeline::Executor::require_setup(const char* who) const {
  CATENA_CHECK(ValueError, is_set_up_, "Pipeline::", who,
               ": the pipeline is not set up; call setup([] { return optimizers::Adam(1e-3); }) "
               "or with another rule first");
}

void Pipeline::Executor::require_same_units(const char* who) const {
  CATENA_CHECK(ValueError, model.size() == size_, "Pipeline::", who, ": the model has ",
               model.size(), " units, and had ", size_,
               " when the pipeline was made; make it after the last add()");
}

// The interface -----------------------------------------------------------------------------------

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

}  // namespace

Pipeline::Pipeline(Sequence& model, const Cut& cut, Schedule schedule, std::vector<Device> devices,
                   const PipelineOptions& options)
    : executor_(std::make_unique<Executor>(model, cut, std::move(schedule),
                                           Executor::Place{std::move(devices)}, options)) {}
Pipeline::Pipeline(Sequence& model, const Cut& cut, Schedule schedule, Communicator& comm,
                   const PipelineOptions& options)
    : executor_(std::make_unique<Executor>(model, cut, std::move(schedule),
                                           Executor::Place{{}, &comm}, options)) {}
Pipeline::Pipeline(Sequence& model, const Cut& cut, Schedule schedule, const CommunicatorPtr& comm,
                   const PipelineOptions& options)
    : Pipeline(model, cut, std::move(schedule), known(comm), options) {}
Pipeline::Pipeline(Sequence& model, const Cut& cut, Schedule schedule, const Grid& grid,
                   const PipelineOptions& options)
    : executor_(std::make_unique<Executor>(
          model, cut, std::move(schedule),
          Executor::Place{{}, &grid.pipeline(), &grid.data(), &grid.tensor()}, options)) {}
Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;

void Pipeline::setup_with(const std::function<std::unique_ptr<Optimizer>()>& make_rule) {
  executor_->setup(make_rule);
}
Array Pipeline::step(const Samples& x, const Samples& t, const Loss& loss) {
  return executor_->step(x, t, loss);
}
Simulation Pipeline::measure(const Samples& x, const Samples& t, const Loss& loss, int steps) {
  return executor_->measure(x, t, loss, steps);
}
double Pipeline::loss() { return executor_->loss(); }
Arrays Pipeline::predict(const Samples& x) { return executor_->predict(x); }
void Pipeline::set_batch_weight(int64_t n_local, int64_t n_global) {
  executor_->set_batch_weight(n_local, n_global);
}
void Pipeline::set_lr(double lr) {
  executor_->require_setup("set_lr");
  for (int s = 0; s < schedule().stages(); ++s)
    if (Optimizer* optimizer = executor_->updates().optimizer(s)) optimizer->set_lr(lr);
}
void Pipeline::prepare_for_capture() { executor_->prepare_for_capture(); }
void Pipeline::average_persistents() { executor_->average_persistents(); }
void Pipeline::collect(int root) { executor_->collect(root); }
int64_t Pipeline::steps() const { return executor_->steps(); }
void Pipeline::set_steps(int64_t n) { executor_->set_steps(n); }
uint64_t Pipeline::seed() const { return executor_->seed(); }
void Pipeline::set_seed(uint64_t seed) { executor_->set_seed(seed); }

namespace {

void check_stage(const char* who, int stage, const Schedule& schedule) {
  CATENA_CHECK(ValueError, stage >= 0 && stage < schedule.stages(), "Pipeline::", who, ": stage ",
               stage, " of ", schedule.stages(), " stages");
}

}  // namespace

bool Pipeline::has_stage(int stage) const {
  check_stage("has_stage", stage, schedule());
  return executor_->has_stage(stage);
}
Device Pipeline::device_of(int stage) const {
  CATENA_CHECK(ValueError, has_stage(stage), "Pipeline::device_of: stage ", stage,
               " is on another rank");
  return executor_->stage(stage).device();
}
Optimizer& Pipeline::optimizer(int stage) {
  executor_->require_setup("optimizer");
  CATENA_CHECK(ValueError, has_stage(stage), "Pipeline::optimizer: stage ", stage,
               " is on another rank");
  Optimizer* optimizer = executor_->updates().optimizer(stage);
  CATENA_CHECK(ValueError, optimizer != nullptr, "Pipeline::optimizer: stage ", stage,
               " has no parameters");
  return *optimizer;
}
const Schedule& Pipeline::schedule() const { return executor_->schedule; }
const Cut& Pipeline::cut() const { return executor_->cut; }
Sequence& Pipeline::model() const { return executor_->model; }

}  // namespace catena::parallel::pipeline
