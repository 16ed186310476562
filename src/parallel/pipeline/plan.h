// Plan of a pipeline: what it runs and where, checked when it is made and the same from then on.
#pragma once

#include <optional>
#include <vector>

#include "catena/parallel/data_axes.h"
#include "catena/parallel/pipeline/pipeline.h"
#include "parallel/pipeline/stage.h"

namespace catena::parallel::pipeline {

// Where stages are: on devices of this process, or on ranks of `comm`, in replicas, with the layers
// of each over `tensor`. Null: there are none of the kind.
struct Place {
  std::vector<Device> devices;  // of the ranks of the schedule
  Communicator* comm = nullptr;
  std::optional<BatchRanks> replicas = {};
  Communicator* tensor = nullptr;
  // All replicas, or null.
  Communicator* data() const { return replicas ? &replicas->all() : nullptr; }
  // Those that there are.
  std::vector<Communicator*> communicators() const;
};

class Plan {
 public:
  // Unties the model. ValueError when these do not fit.
  Plan(Sequence& model, const Cut& cut, Schedule schedule, Place place,
       const PipelineOptions& options);

  int last_stage() const { return schedule.stages() - 1; }
  bool is_over_ranks() const { return place.comm != nullptr && place.comm->size() > 1; }
  int rank_of(int stage) const { return schedule.rank_of_stage[size_t(stage)]; }
  Device device_of(int stage) const { return place.devices[size_t(rank_of(stage))]; }
  bool has_stage(int stage) const {
    return !is_over_ranks() || rank_of(stage) == place.comm->rank();
  }
  UnitRange units(int stage) const {
    return {model, cut.first[size_t(stage)], cut.end(stage, model.size())};
  }
  // Those of this process, in the order of their issue.
  const std::vector<Action>& actions() const { return actions_; }
  bool has_updates() const { return has_updates_; }
  // ValueError if units were added since.
  void require_same_units(const char* who) const;

  Sequence& model;
  Cut cut;
  Schedule schedule;
  Place place;
  PipelineOptions options;

 private:
  void check_fit() const;
  void check_updates() const;
  void check_buckets() const;

  size_t size_;  // units
  std::vector<CommunicatorPtr> kept_;
  std::vector<Action> actions_;
  bool has_updates_;
};

}  // namespace catena::parallel::pipeline
