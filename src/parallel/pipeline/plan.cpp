#include "parallel/pipeline/plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "parallel/pipeline/rules.h"
#include "parallel/pipeline/unit_numbers.h"

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

double duration(Kind kind) {
  switch (kind) {
    case Kind::kForward:
    case Kind::kBackwardInputs:
    case Kind::kBackwardWeights: return 1;
    case Kind::kBackward: return 2;
    default: return 0;
  }
}

// Lists the actions of all ranks for one thread: every action after those that it needs, and about
// when ranks would begin it that compute a forward in one unit of time and each half of a backward
// in one.
class Clock {
 public:
  explicit Clock(const Schedule& schedule)
      : schedule_(schedule), next_(schedule.actions.size()), free_at_(schedule.actions.size()) {}

  std::vector<Action> run() {
    std::vector<Action> order;
    size_t total = 0;
    for (const auto& list : schedule_.actions) total += list.size();
    while (order.size() < total) {
      const auto [rank, begin] = earliest();
      const Action& action = schedule_.actions[rank][next_[rank]++];
      free_at_[rank] = begin + duration(action.kind);
      if (is_message(action.kind)) sent_[action] = begin;
      order.push_back(action);
    }
    return order;
  }

 private:
  // When a rank's next action may begin; nothing when it must wait or has ended.
  std::optional<double> begin_of(size_t rank) const {
    const std::vector<Action>& list = schedule_.actions[rank];
    if (next_[rank] == list.size()) return {};
    const Action& action = list[next_[rank]];
    if (!is_message(action.kind) || is_send(action.kind)) return free_at_[rank];
    const auto sent = sent_.find(other_end(action));
    if (sent == sent_.end()) return {};
    return std::max(free_at_[rank], sent->second);
  }

  std::pair<size_t, double> earliest() const {
    std::optional<std::pair<size_t, double>> best;
    for (size_t rank = 0; rank < next_.size(); ++rank) {
      const std::optional<double> begin = begin_of(rank);
      if (begin && (!best || *begin < best->second)) best = {rank, *begin};
    }
    CATENA_CHECK(ValueError, best, "Pipeline: all ranks of the schedule '", schedule_.name,
                 "' wait for messages that are not sent; check(schedule) says which");
    return *best;
  }

  const Schedule& schedule_;
  std::vector<size_t> next_;
  std::vector<double> free_at_;
  std::map<Action, double> sent_;
};

}  // namespace

std::vector<Communicator*> Place::communicators() const {
  std::vector<Communicator*> all{comm, data(), tensor};
  all.erase(std::remove(all.begin(), all.end(), nullptr), all.end());
  return all;
}

Plan::Plan(Sequence& model_given, const Cut& cut_given, Schedule schedule_given, Place place_given,
           const PipelineOptions& options_given)
    : model(model_given),
      cut(cut_given),
      schedule(completed(std::move(schedule_given), options_given)),
      place(std::move(place_given)),
      options(options_given),
      size_(model.size()),
      has_updates_(Positions(schedule).has({Kind::kUpdate})) {
  check_fit();
  check_updates();
  check_buckets();
  if (options.buckets.sharding == Sharding::kAuto) options.buckets.sharding = Sharding::kNone;
  if (place.comm) place.devices.assign(size_t(schedule.ranks()), place.comm->device());
  for (Communicator* comm : place.communicators()) kept_.push_back(comm->weak_from_this().lock());
  model.untie();
  for (const Action& action : Clock(schedule).run())
    if (has_stage(action.stage)) actions_.push_back(action);
}

void Plan::check_fit() const {
  CATENA_CHECK(ValueError, cut.stages() == schedule.stages(), "Pipeline: the cut has ",
               cut.stages(), " stages, the schedule '", schedule.name, "' ", schedule.stages(),
               "; use partition(model, schedule.stages())");
  cut.check(model.size());
  if (place.comm) {
    CATENA_CHECK(ValueError, place.comm->size() == schedule.ranks(), "Pipeline: the schedule '",
                 schedule.name, "' is for ", schedule.ranks(), " ranks, the communicator has ",
                 place.comm->size());
  } else {
    CATENA_CHECK(ValueError, static_cast<int>(place.devices.size()) == schedule.ranks(),
                 "Pipeline: the schedule '", schedule.name, "' is for ", schedule.ranks(),
                 " ranks, got ", place.devices.size(),
                 " devices; give one for each rank, the same one several times if need be");
  }
  for (const int s : options.recompute)
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
void Plan::check_updates() const {
  const Positions positions(schedule);
  std::string with, without;
  for (int s = 0; s < schedule.stages(); ++s) {
    std::string& text = positions.has({Kind::kUpdate, s}) ? with : without;
    text += message(text.empty() ? "" : ", ", s);
  }
  CATENA_CHECK(ValueError, with.empty() || without.empty(), "Pipeline: the schedule '",
               schedule.name, "' has kUpdate for stages ", with, ", and none for stages ", without,
               "; give every stage one, or none at all: with_updates adds them to a schedule that "
               "has no kReduce and no kUpdate");
  CATENA_CHECK(ValueError, options.clip_norm == 0 || !with.empty(), "Pipeline: clip_norm is ",
               options.clip_norm,
               ", but the schedule has no updates, in which gradients are clipped; leave clip_norm "
               "out, or set updates = true");
}

// A replica whose batch has another length learns shapes alone, where gathers in use would wait for
// the others.
void Plan::check_buckets() const {
  const BucketOptions& buckets = options.buckets;
  CATENA_CHECK(
      ValueError, buckets.slices == 0, "Pipeline: buckets.slices is ", buckets.slices,
      "; a pipeline divides its batch into micro-batches, and adds them up in their order: "
      "leave slices out");
  CATENA_CHECK(ValueError, buckets.sharding != Sharding::kParameters,
               "Pipeline: a pipeline cannot gather parameters in use; use "
               "buckets.sharding = Sharding::kGradients, which spreads states and gradients, and "
               "divide the parameters by more stages");
}

void Plan::require_same_units(const char* who) const {
  CATENA_CHECK(ValueError, model.size() == size_, "Pipeline::", who, ": the model has ",
               model.size(), " units, and had ", size_,
               " when the pipeline was made; make it after the last add()");
}

}  // namespace catena::parallel::pipeline
